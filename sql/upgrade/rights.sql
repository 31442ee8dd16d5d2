-- SPDX-License-Identifier: PostgreSQL
-- What was granted on objects that inbox-managed.sql had made became the extension's own when they
-- were added to it. It is granted again, as by somebody else, or a dump would leave it out.
DO $$
DECLARE
	granted record;
BEGIN
	FOR granted IN
		SELECT o.what, a.grantee::regrole AS role, a.is_grantable AS further,
			pg_catalog.string_agg(a.privilege_type, ', ') AS privileges
		FROM (
			SELECT pg_catalog.format('ROUTINE %s', p.oid::pg_catalog.regprocedure) AS what,
				p.oid, p.proowner AS owner, p.proacl AS acl, 'pg_proc'::regclass AS catalog
			FROM pg_catalog.pg_proc p WHERE p.proname LIKE 'inbox\_%'
				AND p.pronamespace = '@extschema@'::pg_catalog.regnamespace
			UNION ALL
			SELECT pg_catalog.format('%s %s', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
				c.oid::pg_catalog.regclass), c.oid, c.relowner, c.relacl, 'pg_class'::regclass
			FROM pg_catalog.pg_class c WHERE c.relname LIKE 'inbox\_%'
				AND c.relnamespace = '@extschema@'::pg_catalog.regnamespace
		) o
		JOIN pg_catalog.pg_init_privs i ON i.objoid OPERATOR(pg_catalog.=) o.oid AND i.objsubid
			OPERATOR(pg_catalog.=) 0 AND i.classoid OPERATOR(pg_catalog.=) o.catalog,
		pg_catalog.aclexplode(o.acl) a
		WHERE a.grantee NOT IN (0, o.owner)
			AND EXISTS (SELECT FROM pg_catalog.aclexplode(i.initprivs) b
				WHERE b.grantee OPERATOR(pg_catalog.=) a.grantee)
		GROUP BY 1, 2, 3
	LOOP
		EXECUTE pg_catalog.format('REVOKE ALL ON %s FROM %s', granted.what, granted.role);
		PERFORM @extschema@.inbox_outside_script(pg_catalog.format('GRANT %s ON %s TO %s%s',
			granted.privileges, granted.what, granted.role,
			CASE WHEN granted.further THEN ' WITH GRANT OPTION' ELSE '' END));
	END LOOP;
	PERFORM @extschema@.inbox_outside_script('SELECT @extschema@.inbox_regrant()');
END
$$;
