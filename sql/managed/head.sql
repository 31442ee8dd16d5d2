-- SPDX-License-Identifier: PostgreSQL
-- inbox @version@ without an extension, for PostgreSQL that loads no library: Cloud SQL, AlloyDB, RDS.
--
--   psql -v ON_ERROR_STOP=1 -v schema=inbox -f inbox-managed.sql
--
-- by the role that is to own it, which needs CREATE in the database. Safe to run again, as an
-- update does. With -v from_extension=1 it takes over what the extension inbox has, and ends that.

\set inbox_quiet :QUIET
\set inbox_show_context :SHOW_CONTEXT
\set inbox_on_error_stop :ON_ERROR_STOP
\set inbox_on_error_rollback :ON_ERROR_ROLLBACK
\set QUIET on
\set SHOW_CONTEXT never
-- All of it or nothing, whatever this session does with errors.
\set ON_ERROR_STOP on
\set ON_ERROR_ROLLBACK off
\if :{?schema}
\else
	SELECT pg_catalog.current_schema() AS schema \gset
\endif
\if :{?from_extension}
\else
	\set from_extension 0
\endif
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT pg_catalog.set_config('managed_inbox.schema', :'schema', true) AS inbox_setting,
	pg_catalog.set_config('managed_inbox.from_extension', :'from_extension', true) AS inbox_setting,
	pg_catalog.set_config('managed_inbox.version', '', true) AS inbox_setting,
	pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true) AS inbox_setting \gset

DO $inbox_block$
DECLARE
	schema text := current_setting('managed_inbox.schema');
	extension record;
	member record;
	elsewhere text;
BEGIN
	IF schema ~ '["$''\\]' THEN
		RAISE EXCEPTION 'the schema "%" cannot hold inbox', schema
			USING HINT = 'Take one without quotes, backslashes and dollar signs in its name.';
	END IF;
	SELECT n.nspname INTO elsewhere FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = 'inbox_managed' AND n.nspname <> schema;
	IF FOUND THEN
		RAISE EXCEPTION 'this database has a managed inbox, in the schema "%"', elsewhere
			USING DETAIL = 'Two of them would each know half of the keys.',
				HINT = format('psql -v ON_ERROR_STOP=1 -v schema=%s -f inbox-managed.sql updates it.',
					elsewhere);
	END IF;
	IF to_regnamespace(quote_ident(schema)) IS NULL THEN
		EXECUTE format('CREATE SCHEMA %I', schema);
	END IF;

	SELECT e.oid, e.extversion, n.nspname INTO extension FROM pg_extension e
		JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'inbox';
	IF FOUND AND (current_setting('managed_inbox.from_extension') <> '1'
		OR extension.nspname <> schema)
	THEN
		RAISE EXCEPTION 'this database has the extension inbox, in the schema "%"', extension.nspname
			USING DETAIL = 'Two of them would each know half of the keys.',
				HINT = format('psql -v ON_ERROR_STOP=1 -v schema=%s -v from_extension=1 '
					'-f inbox-managed.sql takes over what it has.', extension.nspname);
	ELSIF FOUND THEN
		FOR member IN SELECT d.classid, d.objid, i.type, i.identity FROM pg_depend d,
			pg_identify_object(d.classid, d.objid, d.objsubid) i
			WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = extension.oid
			AND d.deptype = 'e'
		LOOP
			-- From PostgreSQL 17 on, the type of a table goes with it.
			CONTINUE WHEN NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = member.classid
				AND d.objid = member.objid AND d.deptype = 'e');
			EXECUTE format('ALTER EXTENSION inbox DROP %s %s',
				CASE member.type WHEN 'composite type' THEN 'type' ELSE member.type END,
				member.identity);
		END LOOP;
		DROP EXTENSION inbox;
		PERFORM set_config('managed_inbox.version', extension.extversion, true);
	END IF;
END
$inbox_block$;
