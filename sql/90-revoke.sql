DO $$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN SELECT p.oid FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = '@extschema@'::pg_catalog.regnamespace AND p.proname LIKE 'inbox\_%'
	LOOP
		EXECUTE pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', f);
	END LOOP;
END
$$;
