-- Who had rights before has them to what is new.
SELECT @extschema@.inbox_grant(a.grantee::regrole, w.what)
	FROM (VALUES ('puller', 'inbox_process_batch'), ('operator', 'inbox_retry')) AS w(what, has)
	JOIN pg_catalog.pg_proc p ON p.proname = w.has
		AND p.pronamespace = '@extschema@'::pg_catalog.regnamespace,
	pg_catalog.aclexplode(p.proacl) a WHERE a.grantee NOT IN (0, p.proowner);
SELECT @extschema@.inbox_grant(a.grantee::regrole, 'monitor')
	FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a
	WHERE c.oid = '@extschema@.inbox_source'::regclass AND a.grantee NOT IN (0, c.relowner)
	AND a.privilege_type = 'SELECT';
