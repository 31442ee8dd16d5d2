-- Every call reads the source first and holds that until it commits: none is under way after this.
LOCK TABLE @extschema@.inbox_source IN ACCESS EXCLUSIVE MODE;
-- What only these functions call may change with a version, also where CREATE OR REPLACE cannot.
DO $$
DECLARE
	helper regprocedure;
BEGIN
	FOR helper IN SELECT p.oid FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = '@extschema@'::pg_catalog.regnamespace
		AND p.proname LIKE 'inbox\_managed\_%'
	LOOP
		EXECUTE pg_catalog.format('DROP FUNCTION %s', helper);
	END LOOP;
END
$$;
