-- SPDX-License-Identifier: PostgreSQL
-- ---- what only the library can do, and what differs ----------------------------------------

CREATE FUNCTION @extschema@.inbox_check_variant()
	RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT 'versions', m.version = @extschema@.inbox_version(),
		format('managed, tables %s, functions %s', m.version, @extschema@.inbox_version())
			|| CASE WHEN m.version <> @extschema@.inbox_version()
				THEN ': run inbox-managed.sql of the newer version' ELSE '' END
	FROM (SELECT v.version FROM @extschema@.inbox_managed v ORDER BY v.installed_at DESC LIMIT 1) m
	UNION ALL
	SELECT 'dump', true, 'the tables are part of every dump'
	UNION ALL
	SELECT 'min_synchronous_commit', current_setting('synchronous_commit') IN ('on', 'remote_apply'),
		CASE WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply')
		THEN 'each call raises synchronous_commit to on; what lowers it later in the transaction counts'
		ELSE format('synchronous_commit is %s by default: what lowers it after a call in the same '
			'transaction is not raised again; ALTER SYSTEM, ALTER ROLE and ALTER DATABASE … RESET '
			'synchronous_commit', current_setting('synchronous_commit')) END
	UNION ALL
	SELECT 'managed: settings', true, 'what a handler SETs, SET ROLE included, is not undone after '
		'it: use SET clauses of the function'
	UNION ALL
	SELECT 'managed: prepared', true, CASE current_setting('max_prepared_transactions') WHEN '0'
		THEN 'no transaction can be prepared'
		ELSE 'PREPARE TRANSACTION is not refused: prepare none that used inbox, it would hold its keys' END
	UNION ALL
	SELECT 'managed: savepoints', true, 'rolling back to a savepoint takes back what makes a '
		'duplicate durable: act on no verdict that was given after it'
	UNION ALL
	SELECT 'managed: claims', true, 'a role that may call inbox_process can claim a key without '
		'running a handler: grant ''puller'' to pullers only'
	UNION ALL
	SELECT 'managed: keys', true, 'a NUL byte in a key is not looked for; nothing but a superuser''s '
		'cast or a program in C makes such a text'
	UNION ALL
	SELECT 'managed: context', true, 'the line of an error''s CONTEXT that names a message is in a '
		'comment, among lines of these functions'
	UNION ALL
	SELECT 'managed: waits', true, 'a batch that waits for another transaction''s claim keeps those '
		'that it has; all claim in one order, and do not deadlock on claims'
	UNION ALL
	SELECT 'managed: handlers', true, 'a handler in LANGUAGE sql that is a lone SELECT is slower '
		'than one in plpgsql'
	UNION ALL
	SELECT 'managed: names', true, 'a handler is refused where another function by its name takes the '
		'same arguments and further ones with defaults'
	UNION ALL
	SELECT 'managed: statements', true, CASE WHEN current_setting('pg_stat_statements.track', true) = 'all'
			AND current_setting('pg_stat_statements.track_utility', true) <> 'off'
			AND current_setting('server_version_num')::integer < 160000
		THEN 'pg_stat_statements keeps an entry for each message, with its key: '
			'pg_stat_statements.track = top, or track_utility = off'
		ELSE 'each message is a statement with a text of its own' END
	UNION ALL
	SELECT 'managed: rights', true, 'EXECUTE on one function is not enough to call it: use inbox_grant'
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_variant() IS
	'the part of inbox_check that only holds where inbox is not an extension';
