-- SPDX-License-Identifier: PostgreSQL
-- Everything that would break the promise is found.
\set SHOW_CONTEXT never
CREATE EXTENSION inbox;
-- pg_regress itself switches fsync off.
CREATE VIEW trouble AS SELECT name, detail FROM inbox_check() WHERE NOT ok AND name <> 'fsync';
SELECT name FROM inbox_check() WHERE name !~ '^managed' ORDER BY name COLLATE "C";
SELECT * FROM trouble;

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

SELECT * FROM trouble;
DROP EXTENSION inbox CASCADE;
