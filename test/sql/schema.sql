-- SPDX-License-Identifier: PostgreSQL
-- Where inbox lives, and where its caller looks.
CREATE SCHEMA one;
CREATE SCHEMA "Two 2";
CREATE SCHEMA other;
CREATE FUNCTION public.noop(p text) RETURNS void LANGUAGE sql AS $$ $$;
CREATE EXTENSION inbox SCHEMA one;
SELECT one.inbox_process('k', 'p', 'public.noop'), one.inbox_process('k', 'p', 'public.noop');
DROP EXTENSION inbox;
CREATE EXTENSION inbox SCHEMA "Two 2";
SELECT "Two 2".inbox_process('k', 'p', 'public.noop'), "Two 2".inbox_process('k', 'p', 'public.noop');
SELECT verdict, attempts FROM "Two 2".inbox_fail(('f', NULL, NULL, NULL, NULL, NULL, NULL, NULL), 's', '22012', 'e');
DROP EXTENSION inbox;
CREATE EXTENSION inbox SCHEMA one;
SELECT one.inbox_process('k', 'p', 'public.noop'), one.inbox_process('k', 'p', 'public.noop');
DROP EXTENSION inbox;

-- The caller's search_path decides which handler a name means, and nothing else: the key's scope
-- is the source, however the handler is written.
CREATE EXTENSION inbox;
CREATE FUNCTION other.noop(p text) RETURNS void LANGUAGE sql AS $$ $$;
SELECT inbox_process('k', 'p', 'other.noop');
SET search_path = other, public;
SELECT inbox_process('k', 'p', 'noop');
SET search_path = public;
SELECT inbox_process('k', 'p', 'noop');
SELECT source_id, key FROM inbox_claim;
RESET search_path;
-- Nothing in our tables would stop pg_upgrade, or change its meaning in a dump.
SELECT attrelid::regclass, attname, atttypid::regtype FROM pg_attribute
WHERE attrelid IN ('inbox_source'::regclass, 'inbox_claim'::regclass, 'inbox_claim_result'::regclass,
	'inbox_failure'::regclass, 'inbox_audit'::regclass) AND attnum > 0
AND atttypid::regtype::text ~ '^(reg|oid)';

-- Everything is said what it is for.
SELECT p.oid::regprocedure AS "without a comment" FROM pg_proc p
WHERE p.proname LIKE 'inbox\_%' AND obj_description(p.oid, 'pg_proc') IS NULL;
SELECT a.attrelid::regclass, a.attname AS "without a comment" FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relname ~ '^inbox_' AND c.relkind = 'r' AND a.attnum > 0
	AND col_description(a.attrelid, a.attnum) IS NULL;

DROP EXTENSION inbox;
SET client_min_messages = warning;
DROP SCHEMA one, "Two 2", other CASCADE;
DROP FUNCTION public.noop;
