-- SPDX-License-Identifier: PostgreSQL
-- The extension's version "managed" is what inbox-managed.sql has installed, as the extension's own:
--   CREATE EXTENSION inbox SCHEMA … VERSION 'managed'; ALTER EXTENSION inbox UPDATE;
\echo Use "CREATE EXTENSION inbox VERSION 'managed'" to load this file. \quit

DO $$
DECLARE
	version text;
	member record;
BEGIN
	IF pg_catalog.to_regclass('@extschema@.inbox_managed') IS NULL THEN
		RAISE EXCEPTION 'the schema @extschema@ has no managed inbox'
			USING HINT = 'Without VERSION ''managed'' the extension is created empty.';
	END IF;
	SELECT m.version INTO version FROM @extschema@.inbox_managed m
		ORDER BY m.installed_at DESC LIMIT 1;
	IF version OPERATOR(pg_catalog.<>) '@version@' THEN
		RAISE EXCEPTION 'the managed inbox is %, this extension @version@', version
			USING HINT = 'Run inbox-managed.sql of the extension''s version first.';
	END IF;
	-- Every call reads the source first and holds that until it commits: none is under way after this.
	LOCK TABLE @extschema@.inbox_source IN ACCESS EXCLUSIVE MODE;
	FOR member IN SELECT p.oid::pg_catalog.regprocedure AS name FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = '@extschema@'::pg_catalog.regnamespace
		AND p.proname LIKE 'inbox\_managed\_%'
	LOOP
		EXECUTE pg_catalog.format('DROP FUNCTION %s', member.name);
	END LOOP;
	DROP TABLE @extschema@.inbox_managed;
	FOR member IN
		SELECT 'ROUTINE' AS kind, p.oid::pg_catalog.regprocedure::text AS name
		FROM pg_catalog.pg_proc p WHERE p.proname OPERATOR(pg_catalog.=) ANY ('{@own@}')
			AND p.pronamespace = '@extschema@'::pg_catalog.regnamespace
		UNION ALL
		SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'c' THEN 'TYPE'
				WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,
			c.oid::pg_catalog.regclass::text
		FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'S', 'c', 'v')
			AND pg_catalog.regexp_replace(c.relname::text, '_id_seq$', '') OPERATOR(pg_catalog.=) ANY ('{@own@}')
			AND c.relnamespace = '@extschema@'::pg_catalog.regnamespace
	LOOP
		EXECUTE pg_catalog.format('ALTER EXTENSION inbox ADD %s %s', member.kind, member.name);
	END LOOP;
END
$$;
