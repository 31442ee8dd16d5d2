-- SPDX-License-Identifier: PostgreSQL
-- What runs with the rights of the owner is a closed list: what writes claims and failures, or what
-- reads for who may read no table. Each looks up names in pg_catalog; and a handler is the caller's.
\set SHOW_CONTEXT never
CREATE SCHEMA box;
CREATE EXTENSION inbox SCHEMA box;
SELECT p.oid::regprocedure::text COLLATE "C" AS "as the owner", p.provolatile <> 'v' AS "only reads"
FROM pg_proc p WHERE p.pronamespace = 'box'::regnamespace AND p.prosecdef
	AND p.proname NOT IN ('inbox_managed_open', 'inbox_managed_results', 'inbox_managed_close',
		'inbox_managed_retry', 'inbox_managed_resolve') ORDER BY 2, 1;
SELECT p.oid::regprocedure AS "finds names where the caller likes" FROM pg_proc p
WHERE p.pronamespace = 'box'::regnamespace AND p.prosecdef
	AND 'search_path=pg_catalog, pg_temp' <> ALL (coalesce(p.proconfig, '{}'));
-- What is called from these runs as the owner too, and is not for others to call.
SELECT p.oid::regprocedure AS "writes, and others may call it" FROM pg_proc p
WHERE p.pronamespace = 'box'::regnamespace AND NOT p.prosecdef
	AND p.proname IN ('inbox_source_ensure', 'inbox_claim_key', 'inbox_durable', 'inbox_managed_claim',
		'inbox_managed_claim_new', 'inbox_managed_keep_one', 'inbox_managed_applied')
	AND EXISTS (SELECT FROM box.inbox_rights('puller') r WHERE r ~ ('\m' || p.proname || '\('));

CREATE TABLE ran (what text, who text);
CREATE FUNCTION notes(k text, p text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO ran VALUES (k, current_user);
	IF p = 'bad' AND current_user = 'inbox_worker' THEN
		RAISE EXCEPTION 'bad';
	END IF;
	RETURN to_jsonb(current_user::text);
END $$;
CREATE ROLE inbox_worker ROLE CURRENT_USER;
CREATE ROLE inbox_clerk ROLE CURRENT_USER;
GRANT INSERT ON ran TO inbox_worker, inbox_clerk;
GRANT USAGE ON SCHEMA public TO inbox_worker, inbox_clerk;
SELECT box.inbox_grant('inbox_worker', 'puller'), box.inbox_grant('inbox_clerk', 'operator');
SET ROLE inbox_worker;
SELECT handler_signature FROM box.inbox_serve('s', 'public.notes', 'a subscription');
SELECT box.inbox_process('one', 'p', 'public.notes', 's');
SELECT verdict FROM box.inbox_process_batch(ARRAY[('two', 'p', NULL, NULL, NULL, NULL, NULL, NULL),
	('three', 'p', NULL, NULL, NULL, NULL, NULL, NULL)]::box.inbox_message[], 'public.notes', 's');
SELECT box.inbox_process('four', 'bad', 'public.notes', 's');
SELECT verdict FROM box.inbox_fail(('four', 'bad', NULL, NULL, 'm', NULL, NULL, NULL), 's', 'P0001', 'bad',
	reason => 'poison');
SELECT box.inbox_result('one', 's'), box.inbox_result('three', 's');
RESET ROLE;
SET ROLE inbox_clerk;
SELECT box.inbox_retry(f.id) FROM box.inbox_failure f WHERE f.key = 'four';
SELECT event FROM box.inbox_history('four', 's');
RESET ROLE;
SELECT * FROM ran ORDER BY what;

DROP EXTENSION inbox CASCADE;
\set VERBOSITY terse
SET client_min_messages = warning;
DROP SCHEMA box CASCADE;
DROP FUNCTION notes;
DROP TABLE ran;
REVOKE ALL ON SCHEMA public FROM inbox_worker, inbox_clerk;
DROP ROLE inbox_worker, inbox_clerk;
