-- Counted are failures only, by the indexes of those that are open; of claims there may be a
-- thousand million, so theirs are the planner's numbers.
CREATE FUNCTION @extschema@.inbox_status_claims()
	RETURNS TABLE (source_id integer, claims bigint, claim_bytes bigint)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	WITH whole AS (
		SELECT pg_total_relation_size(c.oid) AS bytes,
			CASE WHEN c.relpages > 0 AND c.reltuples > 0
				THEN c.reltuples / c.relpages
					* (pg_relation_size(c.oid) / current_setting('block_size')::numeric)
				ELSE pg_stat_get_live_tuples(c.oid) END AS claims
		FROM pg_class c WHERE c.oid = '@extschema@.inbox_claim'::regclass
	), common AS (
		SELECT u.value::integer AS source_id, u.share
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			JOIN pg_stats p ON p.schemaname = n.nspname AND p.tablename = c.relname
				AND p.attname = 'source_id' AND NOT p.inherited,
			ROWS FROM (unnest(p.most_common_vals::text::text[]),
				unnest(p.most_common_freqs)) AS u(value, share)
		WHERE c.oid = '@extschema@.inbox_claim'::regclass
	), share AS (
		-- What the others leave; before the first ANALYZE nothing is known of any.
		SELECT s.id, coalesce(c.share, CASE WHEN sum(c.share) OVER () IS NOT NULL
			THEN greatest(0, 1 - sum(c.share) OVER ())
				/ count(*) FILTER (WHERE c.share IS NULL) OVER () END,
			1.0 / count(*) OVER ()) AS share
		FROM @extschema@.inbox_source s LEFT JOIN common c ON c.source_id = s.id
	)
	SELECT s.id, round(w.claims * s.share)::bigint, round(w.bytes * s.share)::bigint
	FROM share s, whole w
$$;
COMMENT ON FUNCTION @extschema@.inbox_status_claims() IS
	'the part of inbox_status about claims: estimates from what ANALYZE has seen';

CREATE FUNCTION @extschema@.inbox_status_blocked(this_id integer,
	OUT keys bigint, OUT since timestamptz, OUT first jsonb)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	WITH waiting AS (
		SELECT f.ordering_key, min(f.failed_at) AS since,
			count(*) FILTER (WHERE f.status = 'parked') AS parked,
			(array_agg(f.id ORDER BY coalesce(f.publish_time, f.failed_at), f.id))[1] AS failure
		FROM @extschema@.inbox_failure f JOIN @extschema@.inbox_source s ON s.id = f.source_id
		WHERE f.source_id = this_id AND f.ordering_key IS NOT NULL
			AND f.status IN ('retrying', 'dead', 'parked')
			AND (f.status <> 'dead' OR s.order_policy = 'park')
		GROUP BY f.ordering_key
	)
	SELECT count(*), min(w.since), coalesce((SELECT jsonb_agg(to_jsonb(t) ORDER BY t.since)
		FROM (SELECT * FROM waiting ORDER BY since LIMIT 10) AS t), '[]')
	FROM waiting w
$$;
COMMENT ON FUNCTION @extschema@.inbox_status_blocked(integer) IS
	'the part of inbox_status about ordering keys: how many wait, since when, the ten that wait longest';

CREATE FUNCTION @extschema@.inbox_status()
	RETURNS TABLE (source text, handler text, subscription text, served_at timestamptz,
		halted_since timestamptz, retrying bigint, dead bigint, parked bigint, conflicts bigint,
		expired bigint, oldest timestamptz, blocked_keys bigint, blocked_since timestamptz,
		blocked jsonb, claims bigint, claim_bytes bigint, purged_before timestamptz,
		dedup_window interval, estimated text[])
	LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT s.name, s.handler, s.subscription, s.served_at, s.halted_since,
		coalesce(f.retrying, 0), coalesce(f.dead, 0), coalesce(f.parked, 0),
		coalesce(f.conflicts, 0), coalesce(f.expired, 0), f.oldest,
		b.keys, b.since, b.first, c.claims, c.claim_bytes, s.purged_before, s.dedup_window,
		'{claims,claim_bytes}'::text[]
	FROM @extschema@.inbox_source s
		JOIN @extschema@.inbox_status_claims() c ON c.source_id = s.id
		LEFT JOIN (SELECT o.source_id, count(*) FILTER (WHERE o.status = 'retrying') AS retrying,
				count(*) FILTER (WHERE o.status = 'dead') AS dead,
				count(*) FILTER (WHERE o.status = 'parked') AS parked,
				count(*) FILTER (WHERE o.status = 'conflict') AS conflicts,
				count(*) FILTER (WHERE o.status = 'expired') AS expired,
				min(o.failed_at) AS oldest
			FROM (SELECT l.source_id, l.status, l.failed_at FROM @extschema@.inbox_failure l
				WHERE l.status IN ('retrying', 'dead', 'parked')
				UNION ALL
				SELECT k.source_id, k.status, k.failed_at FROM @extschema@.inbox_failure k
				WHERE k.status IN ('conflict', 'expired')) o
			GROUP BY o.source_id) f ON f.source_id = s.id,
		@extschema@.inbox_status_blocked(s.id) b
	ORDER BY s.name
$$;
COMMENT ON FUNCTION @extschema@.inbox_status() IS
	'how each source stands; all of it is exact but the columns that "estimated" names';

CREATE FUNCTION @extschema@.inbox_failures(of_source text DEFAULT NULL, in_status text DEFAULT NULL,
	up_to integer DEFAULT 20)
	RETURNS TABLE (id bigint, source text, key text, status text, reason text, attempts integer,
		sqlstate text, error text, ordering_key text, message_id text, publish_time timestamptz,
		failed_at timestamptz, last_failed_at timestamptz, retry_at timestamptz,
		payload_bytes integer)
	LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.id, s.name, f.key, f.status, f.reason, f.attempts, f.sqlstate, f.error,
		f.ordering_key, f.message_id, f.publish_time, f.failed_at, f.last_failed_at, f.retry_at,
		octet_length(f.payload)
	-- By the indexes of those that are open, as in inbox_status(): there may be very many settled ones.
	FROM (SELECT l.* FROM @extschema@.inbox_failure l WHERE l.status IN ('retrying', 'dead', 'parked')
			UNION ALL
			SELECT k.* FROM @extschema@.inbox_failure k WHERE k.status IN ('conflict', 'expired')) f
		JOIN @extschema@.inbox_source s ON s.id = f.source_id
	WHERE (of_source IS NULL OR s.name = of_source)
		AND (in_status IS NULL OR f.status = in_status)
	ORDER BY f.last_failed_at DESC, f.id DESC LIMIT up_to
$$;
COMMENT ON FUNCTION @extschema@.inbox_failures(text, text, integer) IS
	'what is not settled, newest first, without payloads: for monitors and pages';

-- There is no test for text that does not raise an error, so the error is what tells.
CREATE FUNCTION @extschema@.inbox_payload_text(payload bytea) RETURNS text
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN convert_from(payload, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire THEN
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_payload_text(bytea) IS
	'a payload as text; NULL where its bytes are not text';

CREATE OR REPLACE VIEW @extschema@.inbox_dead_letters AS
	SELECT f.id, s.name AS source, f.key, f.reason, f.attempts, f.sqlstate, f.error, f.detail,
		f.hint, f.last_failed_at AS died_at,
		pg_catalog.date_trunc('second', pg_catalog.now() - f.last_failed_at) AS age,
		@extschema@.inbox_payload_text(f.payload) AS payload_text, f.payload, f.attributes,
		f.ordering_key, f.message_id, f.publish_time, f.failed_at
	FROM @extschema@.inbox_failure f JOIN @extschema@.inbox_source s ON s.id = f.source_id
	WHERE f.status = 'dead' ORDER BY f.last_failed_at DESC, f.id DESC;
COMMENT ON VIEW @extschema@.inbox_dead_letters IS
	'messages that were given up, newest first: for inbox_retry and inbox_discard';
COMMENT ON COLUMN @extschema@.inbox_dead_letters.age IS 'since it died';
COMMENT ON COLUMN @extschema@.inbox_dead_letters.payload_text IS
	'the payload as text; NULL where it is none';
REVOKE ALL ON @extschema@.inbox_dead_letters FROM PUBLIC;

