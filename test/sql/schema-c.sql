-- SPDX-License-Identifier: PostgreSQL
-- The extension may come, go and move under a running session.
CREATE SCHEMA one;
CREATE SCHEMA "Two 2";
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
ALTER SCHEMA one RENAME TO three;
SELECT three.inbox_process('k', 'p', 'public.noop'), three.inbox_process('k2', 'p', 'public.noop');
-- Another schema by the old name, with a table that looks like ours.
CREATE SCHEMA one;
CREATE TABLE one.inbox_claim (LIKE three.inbox_claim INCLUDING ALL);
CREATE TABLE one.inbox_source (LIKE three.inbox_source INCLUDING ALL);
SELECT three.inbox_process('k', 'p', 'public.noop'), three.inbox_process('k3', 'p', 'public.noop');
SELECT count(*) FROM one.inbox_claim;
SELECT key FROM three.inbox_claim ORDER BY key;
ALTER EXTENSION inbox SET SCHEMA one;
DROP EXTENSION inbox;

CREATE EXTENSION inbox;
-- Everything is said what it is for.
SELECT pg_describe_object(d.classid, d.objid, 0) AS "without a comment"
FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
WHERE e.extname = 'inbox' AND d.deptype = 'e'
	AND d.classid IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass)
	AND obj_description(d.objid, d.classid::regclass::text) IS NULL
	AND NOT EXISTS (SELECT FROM pg_type t WHERE t.oid = d.objid AND (t.typrelid IN (SELECT oid FROM pg_class WHERE relkind IN ('r', 'v')) OR t.typelem <> 0))
	AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = d.objid AND c.relkind IN ('S', 'c'));
SELECT a.attrelid::regclass, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relname ~ '^inbox_' AND c.relkind = 'r' AND a.attnum > 0
	AND col_description(a.attrelid, a.attnum) IS NULL;
SELECT inbox_version() = extversion AS same_version FROM pg_extension WHERE extname = 'inbox';

DROP EXTENSION inbox;
SET client_min_messages = warning;
DROP SCHEMA one, "Two 2", three CASCADE;
DROP FUNCTION public.noop;
