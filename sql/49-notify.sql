CREATE FUNCTION @extschema@.inbox_dead_letter_notify(failure bigint, sqlstate text) RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT pg_notify('inbox_dead_letter', json_build_object('source', s.name, 'id', f.id,
		'sqlstate', inbox_dead_letter_notify.sqlstate)::text)
	FROM @extschema@.inbox_failure f JOIN @extschema@.inbox_source s ON s.id = f.source_id
	WHERE f.id = failure
$$;
COMMENT ON FUNCTION @extschema@.inbox_dead_letter_notify(bigint, text) IS
	'tells who listens on the channel inbox_dead_letter, at COMMIT, that a message has died';

