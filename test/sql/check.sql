-- SPDX-License-Identifier: PostgreSQL
-- Everything that would break the promise is found.
\set SHOW_CONTEXT never
CREATE EXTENSION inbox;
-- pg_regress itself switches fsync off.
CREATE VIEW trouble AS SELECT name, detail FROM inbox_check() WHERE NOT ok AND name <> 'fsync';
SELECT name FROM inbox_check() WHERE name !~ '^managed' ORDER BY name COLLATE "C";
SELECT * FROM trouble;
-- How far it is from being wrong.
SELECT name, regexp_replace(detail, '\d+', 'N', 'g') AS detail FROM inbox_check()
	WHERE name IN ('autovacuum', 'bloat', 'frozen age', 'multixact age', 'prepared', 'damage');

BEGIN;
ALTER TABLE inbox_claim SET UNLOGGED;
SELECT * FROM trouble;
ROLLBACK;

BEGIN;
CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER t BEFORE INSERT ON inbox_claim FOR EACH ROW EXECUTE FUNCTION drops();
SELECT * FROM trouble;
-- And a claim that cannot be made is an error, not a duplicate.
SELECT inbox_accept('k');
\echo :SQLSTATE
ROLLBACK;
BEGIN;
CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER t BEFORE INSERT ON inbox_source FOR EACH ROW EXECUTE FUNCTION drops();
-- Nor does a source that cannot be made keep its caller for ever.
SELECT inbox_accept('k', NULL, 'cannot be made');
ROLLBACK;

BEGIN;
CREATE RULE r AS ON INSERT TO inbox_claim DO INSTEAD NOTHING;
SELECT * FROM trouble;
SELECT inbox_accept('k');
ROLLBACK;

BEGIN;
ALTER TABLE inbox_failure ENABLE ROW LEVEL SECURITY;
SELECT * FROM trouble;
ROLLBACK;

BEGIN;
CREATE TABLE child () INHERITS (inbox_claim);
SELECT * FROM trouble;
ROLLBACK;

BEGIN;
ALTER TABLE inbox_claim DROP CONSTRAINT inbox_claim_pkey;
SELECT * FROM trouble;
SELECT inbox_accept('k');
ROLLBACK;

BEGIN;
ALTER TABLE inbox_claim DROP CONSTRAINT inbox_claim_pkey, ADD PRIMARY KEY (key);
SELECT * FROM trouble;
SELECT inbox_accept('k');
ROLLBACK;

BEGIN;
ALTER TABLE inbox_claim DROP CONSTRAINT inbox_claim_pkey, ADD PRIMARY KEY (source_id, key) DEFERRABLE;
SELECT * FROM trouble;
ROLLBACK;

-- Keys compared otherwise than as bytes: what is equal to a rule may be another message.
BEGIN;
CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
ALTER TABLE inbox_claim ALTER COLUMN key TYPE text COLLATE folded;
SELECT * FROM trouble;
SELECT inbox_accept('Order-A');
ROLLBACK;

-- Another unique index: no new message may be taken for a duplicate because of it.
SELECT inbox_accept('k1', 'same');
BEGIN;
CREATE UNIQUE INDEX other ON inbox_claim (payload_hash);
SELECT * FROM trouble;
SELECT inbox_accept('k2', 'same');
\echo :SQLSTATE
ROLLBACK;

BEGIN;
CREATE ROLE inbox_other ROLE CURRENT_USER;
GRANT CREATE ON SCHEMA public TO inbox_other;
ALTER TABLE inbox_failure OWNER TO inbox_other;
SELECT * FROM trouble;
ROLLBACK;

BEGIN;
CREATE ROLE inbox_other ROLE CURRENT_USER;
GRANT DELETE ON inbox_claim TO inbox_other;
GRANT EXECUTE ON FUNCTION inbox_accept TO PUBLIC;
SELECT * FROM trouble;
ROLLBACK;

-- What has to be looked after.
BEGIN;
ALTER TABLE inbox_claim SET (autovacuum_enabled = false);
SELECT * FROM trouble;
ROLLBACK;

ALTER TABLE inbox_claim_result SET (autovacuum_enabled = off);
INSERT INTO inbox_claim_result SELECT 1, n, '1' FROM generate_series(1, 10100) n;
DELETE FROM inbox_claim_result;
SELECT pg_stat_force_next_flush();
SELECT * FROM trouble WHERE name = 'bloat';
VACUUM inbox_claim_result;
ALTER TABLE inbox_claim_result RESET (autovacuum_enabled);

BEGIN;
SELECT count(*) FROM inbox_failure;
PREPARE TRANSACTION 'inbox check';
SELECT * FROM trouble;
ROLLBACK PREPARED 'inbox check';

-- Who copies the tables: the keys have to come along.
SET client_min_messages = error;
CREATE TABLE ledger (id integer PRIMARY KEY);
BEGIN;
CREATE PUBLICATION effects FOR TABLE ledger, inbox_source;
SELECT * FROM trouble;
ALTER PUBLICATION effects ADD TABLE inbox_claim, inbox_failure;
SELECT * FROM trouble;
ALTER PUBLICATION effects SET TABLE ledger, inbox_source, inbox_failure, inbox_claim WHERE (source_id = 1);
SELECT * FROM trouble;
ALTER PUBLICATION effects SET TABLE ledger, inbox_source, inbox_failure, inbox_claim;
ALTER PUBLICATION effects SET (publish = 'delete');
SELECT * FROM trouble;
ROLLBACK;
DROP TABLE ledger;
RESET client_min_messages;

BEGIN;
ALTER TABLE inbox_failure REPLICA IDENTITY NOTHING;
SELECT * FROM trouble;
ROLLBACK;

SELECT * FROM trouble;
DROP EXTENSION inbox CASCADE;
