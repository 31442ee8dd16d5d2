CREATE FUNCTION @extschema@.inbox_history_of_claims(this_key text, this_source text)
	RETURNS TABLE (at timestamptz, event text, detail jsonb)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.claimed_at, 'applied', jsonb_strip_nulls(jsonb_build_object(
		'source', s.name, 'publish_time', c.publish_time, 'result', r.result))
	FROM @extschema@.inbox_claim c
		JOIN @extschema@.inbox_source s ON s.id = c.source_id
		LEFT JOIN @extschema@.inbox_claim_result r ON (r.source_id, r.key) = (c.source_id, c.key)
	WHERE c.key = this_key AND (this_source IS NULL OR s.name = this_source)
		AND NOT EXISTS (SELECT FROM @extschema@.inbox_failure f
			WHERE f.source_id = c.source_id AND (f.retry_key = c.key OR f.key = c.key
			AND f.reason <> 'conflict' AND f.status NOT IN ('retrying', 'expired')));
$$;
COMMENT ON FUNCTION @extschema@.inbox_history_of_claims(text, text) IS
	'the part of inbox_history about messages that were applied as they came';

CREATE FUNCTION @extschema@.inbox_history_of_failures(this_key text, this_source text)
	RETURNS TABLE (at timestamptz, event text, detail jsonb)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT e.at, e.event, jsonb_strip_nulls(jsonb_build_object(
		'source', s.name, 'failure', f.id, 'message_id', f.message_id) || e.detail)
	FROM @extschema@.inbox_failure f
		JOIN @extschema@.inbox_source s ON s.id = f.source_id
		LEFT JOIN @extschema@.inbox_claim_result r
			ON (r.source_id, r.key) = (f.source_id, coalesce(f.retry_key, f.key))
			AND f.status = 'resolved'
		CROSS JOIN LATERAL (VALUES
			(f.failed_at, CASE WHEN f.reason IN ('conflict', 'parked', 'expired') THEN f.reason
				ELSE 'failed' END, jsonb_build_object('reason', f.reason,
				'publish_time', f.publish_time), true),
			(f.last_failed_at, CASE WHEN f.retry_at IS NULL THEN 'dead' ELSE 'retrying' END,
				jsonb_build_object('attempts', f.attempts, 'sqlstate', f.sqlstate,
					'error', f.error, 'retry_at', f.retry_at),
				f.reason NOT IN ('conflict', 'parked', 'expired')),
			(f.settled_at, f.status, jsonb_build_object('by', f.settled_by,
				'why', f.settled_why, 'key', f.retry_key, 'result', r.result,
				'payload_corrected', nullif(f.retry_payload IS NOT NULL, false)),
				f.settled_at IS NOT NULL)
		) AS e(at, event, detail, happened)
	WHERE this_key IN (f.key, f.retry_key) AND (this_source IS NULL OR s.name = this_source)
		AND e.happened;
$$;
COMMENT ON FUNCTION @extschema@.inbox_history_of_failures(text, text) IS
	'the part of inbox_history about messages that were not';

CREATE FUNCTION @extschema@.inbox_history_of_acts(this_key text, this_source text)
	RETURNS TABLE (at timestamptz, event text, detail jsonb)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT a.at, a.act, jsonb_strip_nulls(jsonb_build_object(
		'source', s.name, 'failure', a.failure_id, 'by', a.who) || a.detail)
	FROM @extschema@.inbox_audit a
		JOIN @extschema@.inbox_source s ON s.id = a.source_id
		LEFT JOIN @extschema@.inbox_failure f ON f.id = a.failure_id
	WHERE CASE WHEN this_key IS NULL THEN a.failure_id IS NULL
			ELSE this_key IN (f.key, f.retry_key) END
		AND (this_source IS NULL OR s.name = this_source);
$$;
COMMENT ON FUNCTION @extschema@.inbox_history_of_acts(text, text) IS
	'the part of inbox_history about what people did';

CREATE FUNCTION @extschema@.inbox_history(key text, source text DEFAULT NULL)
	RETURNS TABLE (at timestamptz, event text, detail jsonb)
	LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT h.at, h.event, h.detail FROM (
		SELECT * FROM @extschema@.inbox_history_of_claims(inbox_history.key, inbox_history.source)
		UNION ALL
		SELECT * FROM @extschema@.inbox_history_of_failures(inbox_history.key, inbox_history.source)
		UNION ALL
		SELECT * FROM @extschema@.inbox_history_of_acts(inbox_history.key, inbox_history.source)
	) AS h(at, event, detail)
	ORDER BY h.at, h.event IN ('resolved', 'discarded'), h.event IN ('retrying', 'dead');
END;
COMMENT ON FUNCTION @extschema@.inbox_history(text, text) IS
	'what became of the message with this key, in the order it happened; NULL: who did what to the '
	'source as a whole';

