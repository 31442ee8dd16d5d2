CREATE FUNCTION @extschema@.inbox_version() RETURNS text
	AS 'MODULE_PATHNAME', 'inbox_version'
	LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.inbox_version() IS
	'the version of the C library; compare it with pg_extension.extversion';

CREATE FUNCTION @extschema@.inbox_process(key text, payload jsonb, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_process_jsonb'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_process(key text, payload json, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_process_json'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_process(key text, payload text, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_process_text'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_process(key text, payload bytea, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_process_bytea'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_accept(key text, payload bytea DEFAULT NULL,
	source text DEFAULT 'default') RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_accept'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_process_batch(messages @extschema@.inbox_message[],
	handler regproc, source text DEFAULT 'default')
	RETURNS TABLE (ordinal integer, key text, verdict text)
	AS 'MODULE_PATHNAME', 'inbox_process_batch'
	LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 200;

CREATE FUNCTION @extschema@.inbox_handler(handler text) RETURNS text
	AS 'MODULE_PATHNAME', 'inbox_handler_signature'
	LANGUAGE C STABLE PARALLEL UNSAFE
	-- What a source is served with is compared as text.
	SET quote_all_identifiers = off;

CREATE FUNCTION @extschema@.inbox_source_ensure(source text) RETURNS integer
	AS 'MODULE_PATHNAME', 'inbox_source_ensure'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_claim_key(source text, key text, payload bytea,
	publish_time timestamptz) RETURNS text
	AS 'MODULE_PATHNAME', 'inbox_claim_key'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_durable(proof boolean) RETURNS void
	AS 'MODULE_PATHNAME', 'inbox_durable'
	LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_retry_one(id bigint, payload bytea, key text) RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_retry_one'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_outside_script(command text) RETURNS void
	AS 'MODULE_PATHNAME', 'inbox_outside_script'
	LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.inbox_outside_script(text) IS
	'runs a command in the script of an update as if it were not in it';

CREATE FUNCTION @extschema@.inbox_check_variant()
	RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT 'versions', e.extversion = @extschema@.inbox_version(),
		format('extension %s, library %s', e.extversion, @extschema@.inbox_version())
			|| CASE WHEN e.extversion <> @extschema@.inbox_version()
				THEN ': ALTER EXTENSION inbox UPDATE, in a new session' ELSE '' END
	FROM pg_extension e WHERE e.extname = 'inbox'
	UNION ALL
	SELECT 'dump', count(*) = 8, format('%s of 8 tables and sequences are part of a dump', count(*))
			|| CASE WHEN count(*) <> 8 THEN ': what is restored would lack the others; back up with '
				'pg_basebackup, which has them' ELSE '' END
	FROM pg_extension e, unnest(e.extconfig) c WHERE e.extname = 'inbox'
	UNION ALL
	SELECT 'min_synchronous_commit', m.least IN ('on', 'remote_apply'),
		CASE WHEN m.least IN ('on', 'remote_apply')
			THEN format('COMMIT raises synchronous_commit to %s at least', m.least)
			ELSE format('COMMIT raises synchronous_commit to %s only: a failover may lose what it has '
				'promised; ALTER SYSTEM, ALTER ROLE and ALTER DATABASE … RESET '
				'inbox.min_synchronous_commit', m.least) END
	FROM (SELECT current_setting('inbox.min_synchronous_commit')) AS m(least)
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_variant() IS
	'the part of inbox_check that only holds where inbox is an extension';

