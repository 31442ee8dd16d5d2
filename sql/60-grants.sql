CREATE FUNCTION @extschema@.inbox_rights(what text) RETURNS SETOF text
	LANGUAGE plpgsql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF what IS NULL OR what NOT IN ('puller', 'operator', 'monitor') THEN
		RAISE EXCEPTION '"%" is not a set of rights', what
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'There are ''puller'', ''operator'' and ''monitor''.';
	END IF;
	RETURN QUERY SELECT r.object
		FROM (VALUES
			('{puller,operator,monitor}'::text[], 'USAGE ON SCHEMA @extschema@'),
			('{puller,operator,monitor}', 'EXECUTE ON FUNCTION @extschema@.inbox_version()'),
			('{monitor,operator}', 'SELECT ON @extschema@.inbox_source'),
			('{operator}', 'SELECT ON @extschema@.inbox_claim'),
			('{operator}', 'SELECT ON @extschema@.inbox_claim_result'),
			('{operator}', 'SELECT ON @extschema@.inbox_failure'),
			('{operator}', 'SELECT ON @extschema@.inbox_dead_letters'),
			('{operator}', 'SELECT ON @extschema@.inbox_audit'),
			('{operator,monitor}', 'SELECT ON @extschema@.inbox_purge_run'),
			('{puller,operator,monitor}', 'SELECT ON ' || to_regclass('@extschema@.inbox_managed'))
		) AS r(who, object)
		WHERE what = ANY (r.who) AND object IS NOT NULL
		UNION ALL
		SELECT format('EXECUTE ON %s %s', CASE f.prokind WHEN 'p' THEN 'PROCEDURE'
			ELSE 'FUNCTION' END, f.oid::regprocedure)
		FROM (VALUES
			('{puller}'::text[], '{inbox_process,inbox_accept,inbox_process_batch,inbox_handler,
				inbox_serve,inbox_source_serve,inbox_lock,inbox_fail,inbox_served,
				inbox_rights,inbox_missing_rights,inbox_restore_point}'::text[]),
			('{puller,operator}', '{inbox_result,inbox_managed_writable,inbox_managed_floor,
				inbox_managed_mark,inbox_managed_open,inbox_managed_close,
				inbox_managed_results,inbox_managed_name,
				inbox_managed_refuse_handler,inbox_managed_handler,inbox_managed_handler_oid,
				inbox_managed_run,inbox_managed_run_rows,inbox_managed_run_each,
				inbox_managed_process,inbox_payload_hash}'),
			('{operator}', '{inbox_managed_retry,inbox_managed_resolve}'),
			('{puller,operator,monitor}', '{inbox_check,inbox_check_server,inbox_check_tables,
				inbox_check_key,inbox_check_variant,inbox_check_upkeep,inbox_check_replication,inbox_status,inbox_failures}'),
			('{puller,operator}', '{inbox_purge_batch}'),
			('{operator}', '{inbox_payload_text,inbox_purge,inbox_erase}'),
			('{operator}', '{inbox_import,inbox_process,inbox_lock,inbox_retry,inbox_retry_one,
				inbox_retry_lock,inbox_retry_alone,inbox_retry_ready,inbox_retry_check,inbox_retry_failed,inbox_retry_pick,inbox_retry_all,
				inbox_release,inbox_release_next,inbox_constraints_check,inbox_constraints_defer,
				inbox_discard,inbox_discard_one,inbox_configure,inbox_history,
				inbox_history_of_claims,inbox_history_of_failures,inbox_history_of_acts,inbox_blame,
				inbox_serve,
				inbox_source_serve,inbox_handler,inbox_restore_point}')
		) AS g(who, names)
		JOIN pg_proc f ON f.proname = ANY (g.names)
			AND f.pronamespace = '@extschema@'::regnamespace
		WHERE what = ANY (g.who);
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_rights(text) IS 'what a puller, operator or monitor may do';

CREATE FUNCTION @extschema@.inbox_missing_rights(role regrole, what text) RETURNS SETOF text
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT r.object
	FROM @extschema@.inbox_rights(what) AS r(object),
		regexp_match(r.object, '^(\w+) ON (FUNCTION |PROCEDURE |SCHEMA |)(.*)$') AS part
	WHERE NOT CASE part[2]
		WHEN 'FUNCTION ' THEN has_function_privilege(role, to_regprocedure(part[3]), part[1])
		WHEN 'PROCEDURE ' THEN has_function_privilege(role, to_regprocedure(part[3]), part[1])
		WHEN 'SCHEMA ' THEN has_schema_privilege(role, to_regnamespace(part[3]), part[1])
		ELSE has_table_privilege(role, to_regclass(part[3]), part[1]) END
$$;
COMMENT ON FUNCTION @extschema@.inbox_missing_rights(regrole, text) IS
	'what inbox_grant would give to a role, and it does not have';

CREATE FUNCTION @extschema@.inbox_grant(role regrole, what text) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE (SELECT string_agg(format('GRANT %s TO %s', r.object, role), '; ')
		FROM @extschema@.inbox_rights(what) AS r(object));
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_grant(regrole, text) IS
	'lets a role be a puller, an operator or a monitor';

-- By what only one set has. An operator may do all that a monitor may.
CREATE FUNCTION @extschema@.inbox_granted() RETURNS TABLE (role oid, what text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT a.grantee, w.what
		FROM (VALUES ('puller', 'inbox_process_batch'), ('operator', 'inbox_retry')) AS w(what, has)
		JOIN pg_proc p ON p.proname = w.has AND p.pronamespace = '@extschema@'::regnamespace,
		aclexplode(p.proacl) a WHERE a.grantee NOT IN (0, p.proowner)
	UNION
	SELECT a.grantee, 'monitor'
		FROM pg_class c, aclexplode(c.relacl) a
		WHERE c.oid = '@extschema@.inbox_source'::regclass AND a.grantee NOT IN (0, c.relowner)
		AND a.privilege_type = 'SELECT'
$$;
COMMENT ON FUNCTION @extschema@.inbox_granted() IS 'which roles have which sets of rights';

-- What another set that the role has gives as well stays, or a puller would stop.
CREATE FUNCTION @extschema@.inbox_revoke(role regrole, what text) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE coalesce((SELECT string_agg(format('REVOKE %s FROM %s', r.object, inbox_revoke.role), '; ')
		FROM @extschema@.inbox_rights(what) AS r(object)
		WHERE r.object NOT IN (SELECT k.object FROM @extschema@.inbox_granted() g,
				@extschema@.inbox_rights(g.what) AS k(object)
			WHERE g.role = inbox_revoke.role AND g.what <> inbox_revoke.what
			AND (inbox_revoke.what, g.what) <> ('operator', 'monitor'))), 'SELECT');
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_revoke(regrole, text) IS
	'takes from a role what inbox_grant gave it, but for what another set of its gives as well';

CREATE FUNCTION @extschema@.inbox_regrant() RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM @extschema@.inbox_grant(g.role::regrole, g.what) FROM @extschema@.inbox_granted() g;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_regrant() IS
	'gives who had rights before an update the rights to what is new';
