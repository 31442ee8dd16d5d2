CREATE FUNCTION @extschema@.inbox_check_tables()
	RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	WITH own AS (
		SELECT c.* FROM pg_class c
		WHERE c.oid IN ('@extschema@.inbox_source'::regclass, '@extschema@.inbox_claim'::regclass,
			'@extschema@.inbox_claim_result'::regclass, '@extschema@.inbox_failure'::regclass,
			'@extschema@.inbox_audit'::regclass)
	), facts AS (
		SELECT 'logged' AS name, 'unlogged, so empty after a crash; ALTER TABLE … SET LOGGED' AS trouble,
			(SELECT string_agg(o.relname, ', ') FROM own o WHERE o.relpersistence <> 'p') AS tables
		UNION ALL
		SELECT 'triggers', 'triggers may keep rows out; DROP TRIGGER … ON …',
			(SELECT string_agg(DISTINCT o.relname, ', ') FROM own o
				JOIN pg_trigger t ON t.tgrelid = o.oid AND NOT t.tgisinternal)
		UNION ALL
		SELECT 'rules', 'rules may keep rows out; DROP RULE … ON …',
			(SELECT string_agg(o.relname, ', ') FROM own o WHERE o.relhasrules)
		UNION ALL
		SELECT 'row security', 'row security may hide rows; ALTER TABLE … DISABLE ROW LEVEL SECURITY, '
				'NO FORCE ROW LEVEL SECURITY',
			(SELECT string_agg(o.relname, ', ') FROM own o
				WHERE o.relrowsecurity OR o.relforcerowsecurity)
		UNION ALL
		SELECT 'inheritance', 'children or parents have rows that no index compares; '
				'ALTER TABLE … NO INHERIT …',
			(SELECT string_agg(DISTINCT o.relname, ', ') FROM own o
				JOIN pg_inherits i ON o.oid IN (i.inhparent, i.inhrelid))
		UNION ALL
		SELECT 'owner', 'another owner than inbox_claim; ALTER TABLE … OWNER TO …',
			(SELECT string_agg(o.relname, ', ') FROM own o, own c
				WHERE c.relname = 'inbox_claim' AND o.relowner <> c.relowner)
		UNION ALL
		SELECT 'rights', 'others than the owner may write; REVOKE INSERT, UPDATE, DELETE, '
				'TRUNCATE, TRIGGER ON … FROM …',
			(SELECT string_agg(DISTINCT o.relname, ', ') FROM own o, aclexplode(o.relacl) a
				WHERE a.grantee <> o.relowner
				AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER'))
	)
	SELECT f.name, f.tables IS NULL, coalesce(f.tables || ': ' || f.trouble, 'all tables') FROM facts f
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_tables() IS 'the part of inbox_check about the tables';

CREATE FUNCTION @extschema@.inbox_check_key() RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT 'primary key', p.good, CASE WHEN p.good THEN '(source_id, key), valid, compared as bytes'
		ELSE 'it has to be (source_id, key), valid, not deferrable, compared as bytes; '
			'ALTER TABLE … DROP CONSTRAINT …, ADD PRIMARY KEY (source_id, key)' END
	FROM (SELECT coalesce(bool_or(i.indisprimary AND i.indisvalid AND i.indisready
			AND i.indimmediate AND i.indnkeyatts = 2 AND i.indkey::text = '1 2'
			AND i.indcollation[1] = '"C"'::regcollation), false) AS good
		FROM pg_index i WHERE i.indrelid = '@extschema@.inbox_claim'::regclass) AS p
	UNION ALL
	SELECT 'collation', bool_and(a.attcollation = '"C"'::regcollation),
		coalesce(string_agg(format('%s.%s', a.attrelid::regclass, a.attname), ', ')
			FILTER (WHERE a.attcollation <> '"C"'::regcollation) || ' is not compared as bytes; '
			'ALTER TABLE … ALTER COLUMN … TYPE text COLLATE "C"', 'names and keys are compared as bytes')
	FROM pg_attribute a
	WHERE (a.attrelid, a.attname) IN (('@extschema@.inbox_claim'::regclass, 'key'),
		('@extschema@.inbox_claim_result'::regclass, 'key'),
		('@extschema@.inbox_failure'::regclass, 'key'),
		('@extschema@.inbox_source'::regclass, 'name'))
	UNION ALL
	SELECT 'other indexes', count(*) = 0,
		coalesce(string_agg(i.indexrelid::regclass::text, ', ')
			|| ': new messages may fail because of it; DROP INDEX …', 'no other unique index')
	FROM pg_index i WHERE i.indrelid = '@extschema@.inbox_claim'::regclass
		AND NOT i.indisprimary AND (i.indisunique OR i.indisexclusion)
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_key() IS
	'the part of inbox_check about what makes a key unique';

CREATE FUNCTION @extschema@.inbox_check_server() RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT 'encoding', current_setting('server_encoding') = 'UTF8',
		'the database is ' || current_setting('server_encoding')
			|| CASE current_setting('server_encoding') WHEN 'UTF8' THEN ''
				ELSE '; CREATE DATABASE … ENCODING UTF8 TEMPLATE template0' END
	UNION ALL
	SELECT 'primary', NOT pg_is_in_recovery(),
		CASE WHEN pg_is_in_recovery() THEN 'this server is a standby; connect to the primary' ELSE 'not a standby' END
	UNION ALL
	SELECT s.setting, current_setting(s.setting) = 'on',
		CASE current_setting(s.setting) WHEN 'on' THEN 'on'
			ELSE 'off: a crash may lose what COMMIT has promised; ALTER SYSTEM SET ' || s.setting || ' = on'
			END
	FROM unnest('{fsync,full_page_writes}'::text[]) AS s(setting)
	UNION ALL
	SELECT 'standbys', true, CASE current_setting('synchronous_standby_names')
		WHEN '' THEN 'no synchronous standby: a failover may lose what COMMIT has promised'
		ELSE 'COMMIT waits for ' || current_setting('synchronous_standby_names') END
	UNION ALL
	SELECT 'public', count(*) = 0,
		coalesce(string_agg(p.oid::regprocedure::text, ', ') || ' may be called by everyone; '
			'REVOKE EXECUTE ON FUNCTION … FROM PUBLIC',
			'nothing is granted to everyone')
	FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
	WHERE p.pronamespace = '@extschema@'::regnamespace AND p.proname = ANY ('{@own@}')
		AND a.grantee = 0
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_server() IS
	'the part of inbox_check about the server and the rights';

CREATE FUNCTION @extschema@.inbox_check() RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT * FROM @extschema@.inbox_check_server()
	UNION ALL SELECT * FROM @extschema@.inbox_check_tables()
	UNION ALL SELECT * FROM @extschema@.inbox_check_key()
	UNION ALL SELECT * FROM @extschema@.inbox_check_upkeep()
	UNION ALL SELECT * FROM @extschema@.inbox_check_replication()
	UNION ALL SELECT * FROM @extschema@.inbox_check_variant()
$$;
COMMENT ON FUNCTION @extschema@.inbox_check() IS
	'everything on this server that would break the promise: nothing does where all are ok';

