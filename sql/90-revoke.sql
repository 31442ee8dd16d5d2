DO $$
DECLARE
	f regprocedure;
BEGIN
	-- Only what is new. What a GRANT or REVOKE in the script of an extension touches is the
	-- extension's own from then on, with whatever others were granted, and is left out of dumps.
	FOR f IN SELECT p.oid FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = '@extschema@'::pg_catalog.regnamespace
		AND p.proname OPERATOR(pg_catalog.=) ANY ('{@own@}')
		AND EXISTS (SELECT FROM pg_catalog.aclexplode(coalesce(p.proacl,
			pg_catalog.acldefault('f', p.proowner))) a WHERE a.grantee OPERATOR(pg_catalog.=) 0)
	LOOP
		EXECUTE pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', f);
	END LOOP;
END
$$;
