SELECT @extschema@.inbox_regrant();
-- Who was granted a single function needs what it is made of, which is new each time.
DO $$
DECLARE
	granted record;
BEGIN
	FOR granted IN SELECT DISTINCT r.object, a.grantee::pg_catalog.regrole AS role
		FROM (VALUES ('puller', '{inbox_process,inbox_accept,inbox_process_batch}'::text[]),
			('operator', '{inbox_retry_one}')) AS w(what, has)
		JOIN pg_catalog.pg_proc p ON p.proname = ANY (w.has)
			AND p.pronamespace = '@extschema@'::pg_catalog.regnamespace,
		pg_catalog.aclexplode(p.proacl) a, @extschema@.inbox_rights(w.what) AS r(object)
		WHERE a.grantee NOT IN (0, p.proowner)
			AND r.object ~ '\.(inbox_managed_\w+|inbox_payload_hash)\('
	LOOP
		EXECUTE pg_catalog.format('GRANT %s TO %s', granted.object, granted.role);
	END LOOP;
END
$$;
