-- SPDX-License-Identifier: PostgreSQL
-- A puller can claim keys by running handlers, and nothing else.
\set SHOW_CONTEXT never
CREATE SCHEMA box;
CREATE EXTENSION inbox SCHEMA box;
CREATE SCHEMA books;
CREATE TABLE books.ledger (key text, who text);
CREATE FUNCTION books.post(k text, p text) RETURNS void LANGUAGE sql SECURITY DEFINER
	SET search_path = books, pg_temp AS
	$$ INSERT INTO ledger VALUES (k, current_user = session_user) $$;
CREATE FUNCTION books.hidden(k text, p text) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ $$;
REVOKE ALL ON FUNCTION books.post, books.hidden FROM PUBLIC;
CREATE ROLE inbox_nobody ROLE CURRENT_USER;
CREATE ROLE inbox_puller ROLE CURRENT_USER;
CREATE ROLE inbox_operator ROLE CURRENT_USER;
CREATE ROLE inbox_monitor ROLE CURRENT_USER;
GRANT USAGE ON SCHEMA books TO inbox_puller;
GRANT EXECUTE ON FUNCTION books.post TO inbox_puller;
SELECT box.inbox_grant('inbox_puller', 'puller'), box.inbox_grant('inbox_operator', 'operator'),
	box.inbox_grant('inbox_monitor', 'monitor');
SELECT box.inbox_grant('inbox_puller', 'everything');
SELECT box.inbox_missing_rights('inbox_puller', 'puller');
SELECT box.inbox_missing_rights('inbox_monitor', 'operator') LIMIT 1;
SELECT count(*) > 5 AS several FROM box.inbox_missing_rights('inbox_nobody', 'puller');

-- PUBLIC has nothing.
SELECT p.proname FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
WHERE p.pronamespace = 'box'::regnamespace AND a.grantee = 0;
SELECT c.relname FROM pg_class c, aclexplode(c.relacl) a
WHERE c.relnamespace = 'box'::regnamespace AND a.grantee = 0;
GRANT USAGE ON SCHEMA box TO inbox_nobody;
SET ROLE inbox_nobody;
SELECT box.inbox_process('k', 'p', 'books.post'::text::regproc);
SELECT box.inbox_accept('k');
RESET ROLE;

SET ROLE inbox_puller;
SELECT box.inbox_process('k1', 'p', 'books.post');
SELECT box.inbox_process('k1', 'p', 'books.post');
SELECT verdict FROM box.inbox_process_batch(
	ARRAY[('k2', 'p', NULL, NULL, NULL, NULL, NULL, NULL)]::box.inbox_message[], 'books.post');
SELECT box.inbox_accept('k3');
-- Not the tables, not a handler that was not granted, not through a handler of its own.
SELECT box.inbox_process('k4', 'p', 'books.hidden');
\echo :SQLSTATE
SELECT * FROM box.inbox_claim;
INSERT INTO box.inbox_claim (source_id, key) VALUES (1, 'forged');
DELETE FROM box.inbox_claim;
SELECT box.inbox_source_ensure('x');
SELECT box.inbox_durable(true);
SELECT box.inbox_import('{a}', 'default');
RESET ROLE;
GRANT CREATE ON SCHEMA books TO inbox_puller;
SET ROLE inbox_puller;
CREATE FUNCTION books.thief(k text, p text) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN EXECUTE p; RAISE NOTICE '% runs as %', k, current_user; END $$;
SELECT box.inbox_process('k5', 'SELECT 1', 'books.thief');
SELECT box.inbox_process('k6', 'DELETE FROM box.inbox_claim', 'books.thief');
SELECT box.inbox_process('k7', 'INSERT INTO box.inbox_claim (source_id, key) VALUES (1, ''forged'')', 'books.thief');
-- The words differ from version to version.
\set VERBOSITY sqlstate
SELECT box.inbox_process('k8', 'ALTER ROLE inbox_puller SUPERUSER', 'books.thief');
\set VERBOSITY default
RESET ROLE;
SELECT key FROM box.inbox_claim ORDER BY key;
SELECT * FROM books.ledger ORDER BY key;

-- No operator or function of the caller's is run with the rights of the owner.
SET ROLE inbox_puller;
CREATE FUNCTION books.evil(text, text) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN RAISE NOTICE 'evil as %', current_user; RETURN false; END $$;
CREATE FUNCTION books.evil(integer, integer) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN RAISE NOTICE 'evil as %', current_user; RETURN false; END $$;
CREATE FUNCTION books.evil(timestamptz, timestamptz) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN RAISE NOTICE 'evil as %', current_user; RETURN false; END $$;
CREATE OPERATOR books.= (FUNCTION = books.evil, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR books.<> (FUNCTION = books.evil, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR books.= (FUNCTION = books.evil, LEFTARG = integer, RIGHTARG = integer);
CREATE OPERATOR books.> (FUNCTION = books.evil, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE OPERATOR books.< (FUNCTION = books.evil, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE FUNCTION books.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS
	$$ BEGIN RAISE NOTICE 'evil as %', current_user; END $$;
\c -
SET ROLE inbox_puller;
SET search_path = books, pg_catalog, box;
SELECT inbox_process('e1', 'p', 'books.post');
SELECT inbox_process('e1', 'p', 'books.post');
SELECT verdict FROM inbox_process_batch(ARRAY[('e2', 'p', NULL, NULL, NULL, NULL, NULL, NULL),
	('e1', 'q', NULL, NULL, NULL, NULL, NULL, NULL)]::inbox_message[], 'books.post');
SELECT verdict, attempts FROM inbox_fail(('e3', 'p', NULL, NULL, NULL, NULL, NULL, NULL)::inbox_message,
	'default', '22012', 'division by zero');
SELECT verdict FROM inbox_process_batch(ARRAY[('e3', 'p', NULL, NULL, NULL, NULL, NULL, NULL)]::inbox_message[],
	'books.post');
SELECT source_id IS NOT NULL AS served FROM inbox_serve('e', 'post', 'a subscription');
SELECT inbox_lock('e');
SELECT inbox_result('e1');
RESET ROLE;
RESET search_path;

-- Row security on our tables does not stop us, and we act as whoever owns them now.
CREATE ROLE inbox_owner ROLE CURRENT_USER;
GRANT USAGE, CREATE ON SCHEMA box TO inbox_owner;
ALTER TABLE box.inbox_claim OWNER TO inbox_owner;
ALTER TABLE box.inbox_claim_result OWNER TO inbox_owner;
ALTER TABLE box.inbox_source OWNER TO inbox_owner;
ALTER TABLE box.inbox_failure OWNER TO inbox_owner;
ALTER TABLE box.inbox_audit OWNER TO inbox_owner;
SET ROLE inbox_puller;
SELECT box.inbox_process('o1', 'p', 'books.post'), box.inbox_process('o1', 'p', 'books.post');
SELECT box.inbox_process('o2', 'p', 'books.post', 'a new source');
RESET ROLE;
REVOKE INSERT ON box.inbox_claim FROM inbox_owner;
SET ROLE inbox_puller;
SELECT box.inbox_process('o3', 'p', 'books.post');
RESET ROLE;
GRANT INSERT ON box.inbox_claim TO inbox_owner;

-- Operators and monitors.
SET ROLE inbox_operator;
SELECT count(*) > 0 AS readable FROM box.inbox_claim;
SELECT box.inbox_import('{i1}', 'default');
DELETE FROM box.inbox_claim;
RESET ROLE;
SET ROLE inbox_monitor;
SELECT count(*) > 0 AS readable FROM box.inbox_source;
SELECT count(*) FROM box.inbox_check() WHERE NOT ok AND name <> 'fsync';
SELECT * FROM box.inbox_claim;
RESET ROLE;
-- Who has two sets keeps the other one.
SELECT box.inbox_grant('inbox_puller', 'monitor'), box.inbox_grant('inbox_puller', 'operator');
SELECT box.inbox_revoke('inbox_puller', 'monitor');
SELECT box.inbox_missing_rights('inbox_puller', 'operator');
SELECT box.inbox_revoke('inbox_puller', 'operator');
SELECT box.inbox_missing_rights('inbox_puller', 'puller');
SELECT count(*) > 5 AS several FROM box.inbox_missing_rights('inbox_puller', 'operator');
SELECT box.inbox_revoke('inbox_puller', 'puller'), box.inbox_revoke('inbox_operator', 'operator'),
	box.inbox_revoke('inbox_monitor', 'monitor'), box.inbox_revoke('inbox_nobody', 'monitor');
SET ROLE inbox_puller;
SELECT box.inbox_accept('k9');
RESET ROLE;

DROP EXTENSION inbox CASCADE;
\set VERBOSITY terse
SET client_min_messages = warning;
DROP SCHEMA box, books CASCADE;
DROP ROLE inbox_nobody, inbox_puller, inbox_operator, inbox_monitor, inbox_owner;
