-- SPDX-License-Identifier: PostgreSQL
-- ---- order and expiry ----------------------------------------------------------------------

-- Neither too old nor held back is what was applied before. What comes before a message in its own
-- call does not hold it up: it is applied first, or none is; unless it is only a copy of what is
-- dead. Where a time is missing, it holds.
CREATE FUNCTION @extschema@.inbox_managed_hold(this_id integer, parks boolean,
	purged_before timestamptz, keys text[], ordering_keys text[], times timestamptz[],
	found_keys text[]) RETURNS text[]
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN (
		WITH message AS (
			SELECT u.*, min(u.n) OVER (PARTITION BY u.key COLLATE "C") AS first
			FROM ROWS FROM (unnest(keys), unnest(ordering_keys), unnest(times))
				WITH ORDINALITY AS u(key, ordering_key, publish_time, n)
		), held AS (
			SELECT m.n, bool_or(f.status = 'retrying') AS waits
			FROM message m JOIN @extschema@.inbox_failure f ON f.source_id = this_id
				AND f.ordering_key = m.ordering_key AND f.key <> m.key
				AND f.status IN ('retrying', 'dead', 'parked') AND (f.status <> 'dead' OR parks)
			WHERE m.n = m.first AND (f.publish_time <= m.publish_time) IS NOT FALSE
				AND NOT EXISTS (SELECT FROM message e WHERE e.key COLLATE "C" = f.key
					AND e.n = e.first AND e.n < m.n AND (e.key COLLATE "C" = ANY (found_keys)) IS NOT TRUE
					AND (e.publish_time < inbox_managed_hold.purged_before) IS NOT TRUE)
			GROUP BY m.n
		)
		SELECT array_agg(CASE WHEN EXISTS (SELECT FROM unnest(found_keys) c(key)
				WHERE c.key COLLATE "C" = m.key) THEN 'found'
			WHEN o.publish_time < inbox_managed_hold.purged_before THEN 'expired'
			WHEN h.waits THEN 'later'
			WHEN NOT h.waits THEN 'parks' END ORDER BY m.n)
		FROM message m JOIN message o ON o.n = m.first LEFT JOIN held h ON h.n = m.first);
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_hold(integer, boolean, timestamptz, text[], text[],
	timestamptz[], text[]) IS
	'for each message: found, expired, later, parks (instead of being applied), or NULL';

-- ---- a call --------------------------------------------------------------------------------

CREATE FUNCTION @extschema@.inbox_managed_refuse_conflict(source text, key text, hash bigint,
	claimed bigint) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RAISE EXCEPTION 'the key "%" was claimed with another payload', key
		USING ERRCODE = 'IX001',
			DETAIL = format('Source "%s", payload hash %s; the claim has %s.', source, hash, claimed),
			HINT = format('A new intent needs a new key. A producer that writes the same intent in '
				'other bytes each time can be let in with inbox_configure(%L, '
				'conflict_check => false).', source);
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_refuse_conflict(text, text, bigint, bigint) IS
	'the error of a single message whose key was claimed with another payload';

CREATE FUNCTION @extschema@.inbox_managed_verdicts(compares boolean, keys text[], hashes bigint[],
	held text[], found_keys text[], found_hashes bigint[]) RETURNS text[]
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
	SET enable_nestloop = off
AS $$
	SELECT array_agg(CASE
		WHEN m.held IN ('expired', 'later') THEN m.held
		WHEN m.n = m.first AND c.key IS NULL THEN
			CASE m.held WHEN 'parks' THEN 'parked' ELSE 'applied' END
		WHEN @extschema@.inbox_managed_conflicts(compares, m.hash,
			CASE WHEN c.key IS NULL THEN m.first_hash ELSE c.hash END) THEN 'conflict'
		ELSE 'duplicate' END ORDER BY m.n)
	FROM (SELECT u.*, min(u.n) OVER same AS first, first_value(u.hash) OVER same AS first_hash
		FROM ROWS FROM (unnest(keys), unnest(hashes), unnest(held))
			WITH ORDINALITY AS u(key, hash, held, n)
		WINDOW same AS (PARTITION BY u.key COLLATE "C" ORDER BY u.n)) m
	LEFT JOIN ROWS FROM (unnest(found_keys), unnest(found_hashes)) AS c(key, hash)
		ON c.key COLLATE "C" = m.key
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_verdicts(boolean, text[], bigint[], text[], text[],
	bigint[]) IS
	'the verdict of each message, by the claims that were read and by what came before it';

-- After the handlers: one that looks for its own failure has to find it.
CREATE FUNCTION @extschema@.inbox_managed_close(messages @extschema@.inbox_message[], source text,
	verdicts text[]) RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	src record;
	kept record;
BEGIN
	-- Read again: while a claim was waited for, a failure of that key may have been recorded.
	SELECT * INTO src FROM @extschema@.inbox_managed_source(source);
	IF verdicts && '{conflict,parked,expired}' THEN
		FOR kept IN
			SELECT messages[v.n] AS message, v.verdict,
				@extschema@.inbox_payload_hash((messages[v.n]).payload) AS hash
			FROM unnest(verdicts) WITH ORDINALITY AS v(verdict, n)
			WHERE v.verdict IN ('conflict', 'parked', 'expired') ORDER BY v.n
		LOOP
			IF kept.verdict = 'conflict' THEN
				PERFORM @extschema@.inbox_failure_conflict(src.id, (kept.message).key, kept.message, kept.hash);
			ELSE
				PERFORM @extschema@.inbox_managed_keep_one(src.id, kept.message, kept.hash, kept.verdict);
			END IF;
		END LOOP;
	END IF;
	IF src.holding THEN
		DELETE FROM @extschema@.inbox_failure f
			USING ROWS FROM (unnest(messages), unnest(verdicts)) AS m(key, payload, attributes,
				ordering_key, message_id, publish_time, delivery_attempt, source, verdict)
			WHERE f.source_id = src.id AND f.key = m.key AND f.status = 'retrying'
			AND m.verdict IN ('applied', 'duplicate', 'conflict', 'expired');
	END IF;
	IF src.troubled AND 'applied' = ANY (verdicts) THEN
		PERFORM @extschema@.inbox_managed_applied(src.id);
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_close(@extschema@.inbox_message[], text, text[]) IS
	'the last part of a call: keeps what was not applied, and forgets the failures of what was';

-- SKIP LOCKED: concurrent batches must not queue for this row; one of them noting it will do.
CREATE FUNCTION @extschema@.inbox_managed_applied(this_id integer) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	UPDATE @extschema@.inbox_source s
		SET applied_at = clock_timestamp(), halted_since = NULL
		WHERE s.id = (SELECT l.id FROM @extschema@.inbox_source l
			WHERE l.id = this_id FOR UPDATE SKIP LOCKED);
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_applied(integer) IS
	'notes a success, which ends a halt';

CREATE FUNCTION @extschema@.inbox_managed_keep_one(this_id integer,
	message @extschema@.inbox_message, hash bigint, kept_as text) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	-- A message that comes again is kept once. One that failed before its ordering key was parked
	-- has a row, which says so from now on.
	IF kept_as = 'expired' THEN
		INSERT INTO @extschema@.inbox_failure (source_id, key, payload, attributes, ordering_key,
				message_id, publish_time, delivery_attempt, payload_hash, status, reason, error)
			VALUES (this_id, message.key, message.payload, message.attributes,
				message.ordering_key, message.message_id, message.publish_time,
				message.delivery_attempt, hash, kept_as, kept_as,
				'published before the time from which keys are kept')
			ON CONFLICT (source_id, key, status, payload_hash)
				WHERE status IN ('conflict', 'expired') DO NOTHING;
	ELSE
		INSERT INTO @extschema@.inbox_failure (source_id, key, payload, attributes, ordering_key,
				message_id, publish_time, delivery_attempt, payload_hash, status, reason,
				sqlstate, error)
			VALUES (this_id, message.key, message.payload, message.attributes,
				message.ordering_key, message.message_id, message.publish_time,
				message.delivery_attempt, hash, kept_as, kept_as, 'IX004',
				'waits for an earlier message of its ordering key')
			ON CONFLICT (source_id, key) WHERE status IN ('retrying', 'dead', 'parked')
			DO UPDATE SET status = EXCLUDED.status, reason = EXCLUDED.reason, retry_at = NULL;
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_keep_one(integer, @extschema@.inbox_message, bigint,
	text) IS 'keeps one message that is parked or expired';

-- The keys once more, as an array of their own: taking messages apart is what costs.
CREATE FUNCTION @extschema@.inbox_managed_open(messages @extschema@.inbox_message[],
	given_hash bigint, source text, single boolean, runs boolean,
	OUT verdicts text[], OUT keys text[])
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
	src record;
	claim record;
	look record;
	hashes bigint[];
	ordering_keys text[];
	times timestamptz[];
	held text[];
	faster boolean;
	bad integer;
BEGIN
	SELECT * INTO src FROM @extschema@.inbox_managed_source(source);
	IF NOT FOUND THEN
		PERFORM @extschema@.inbox_source_ensure(source);
		SELECT * INTO STRICT src FROM @extschema@.inbox_managed_source(source);
	END IF;
	SELECT array_agg(m.key), array_agg(m.hash), array_agg(m.ordering_key),
			array_agg(m.publish_time), min(m.n) FILTER (WHERE m.bad)
		INTO keys, hashes, ordering_keys, times, bad
		FROM (SELECT u.key, u.ordering_key, u.publish_time, u.n,
			CASE WHEN single THEN given_hash ELSE @extschema@.inbox_payload_hash(u.payload) END AS hash,
			u.key IS NULL OR octet_length(u.key) NOT BETWEEN 1 AND 1024
				OR coalesce(u.source <> source, false) AS bad
			FROM unnest(messages) WITH ORDINALITY AS u(key, payload, attributes, ordering_key,
				message_id, publish_time, delivery_attempt, source, n)) AS m;
	IF bad IS NOT NULL THEN
		IF single THEN
			PERFORM @extschema@.inbox_managed_check_key(keys[1]);
		END IF;
		EXECUTE @extschema@.inbox_managed_mark(bad, CASE WHEN octet_length(keys[bad])
				BETWEEN 1 AND 1024 THEN keys[bad] END)
			|| 'SELECT @extschema@.inbox_managed_refuse($1, $2, $3)'
			USING messages[bad], bad, source;
	ELSIF keys IS NULL THEN
		verdicts := '{}';
		RETURN;
	END IF;
	-- While it was waited for, another one may have become the source's lock.
	WHILE runs AND NOT pg_try_advisory_xact_lock_shared(src.lock_key) LOOP
		PERFORM pg_advisory_xact_lock_shared(src.lock_key);
		SELECT * INTO STRICT src FROM @extschema@.inbox_managed_source(source);
	END LOOP;

	IF src.holding OR EXISTS (SELECT FROM unnest(times) AS t(publish_time)
		WHERE t.publish_time < src.purged_before)
	THEN
		SELECT * INTO look FROM @extschema@.inbox_managed_find(src.id, keys);
		held := @extschema@.inbox_managed_hold(src.id, src.parks, src.purged_before, keys,
			ordering_keys, times, look.keys);
	END IF;
	claim := @extschema@.inbox_managed_claim(src.id, CASE WHEN held IS NULL THEN keys
		ELSE ARRAY(SELECT CASE WHEN u.held IS NULL OR u.held = 'parks' THEN u.key END
			FROM ROWS FROM (unnest(keys), unnest(held)) WITH ORDINALITY AS u(key, held, n)
			ORDER BY u.n) END, hashes, times);
	faster := cardinality(claim.found_keys) > 0;
	-- What was found is not inserted again, for a purge may be deleting it.
	IF held IS NOT NULL THEN
		claim.found_keys := claim.found_keys || look.keys;
		claim.found_hashes := claim.found_hashes || look.hashes;
	END IF;
	-- Where another transaction had one of the keys, its message may have died there since, and those
	-- behind it must not be applied.
	IF src.parks AND faster THEN
		SELECT * INTO STRICT src FROM @extschema@.inbox_managed_source(source);
		IF src.holding THEN
			held := ARRAY(SELECT CASE WHEN u.held IN ('expired', 'later') OR u.again IN ('expired', 'later')
					THEN u.held ELSE u.again END
				FROM ROWS FROM (unnest(held), unnest(@extschema@.inbox_managed_hold(src.id, src.parks,
					src.purged_before, keys, ordering_keys, times, claim.found_keys)))
					WITH ORDINALITY AS u(held, again, n) ORDER BY u.n);
		END IF;
	END IF;
	IF held IS NULL AND cardinality(claim.new_keys) = cardinality(keys) THEN
		verdicts := array_fill('applied'::text, ARRAY[cardinality(keys)]);
	ELSE
		verdicts := @extschema@.inbox_managed_verdicts(src.compares, keys, hashes, held,
			claim.found_keys, claim.found_hashes);
		IF single AND verdicts[1] = 'conflict' THEN
			PERFORM @extschema@.inbox_managed_refuse_conflict(source, keys[1], given_hash, claim.found_hashes[1]);
		END IF;
	END IF;
	IF cardinality(claim.new_keys) = 0
		AND (claim.found_keys IS NOT NULL OR 'expired' = ANY (verdicts))
	THEN
		PERFORM @extschema@.inbox_durable(true);
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_open(@extschema@.inbox_message[], bigint, text,
	boolean, boolean) IS
	'the first part of a call: claims the keys of its messages; a verdict for each of them';

CREATE FUNCTION @extschema@.inbox_managed_results(source text, messages @extschema@.inbox_message[],
	verdicts text[], results jsonb[]) RETURNS void
	LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	INSERT INTO @extschema@.inbox_claim_result (source_id, key, result)
		SELECT s.id, r.key, r.result
		FROM @extschema@.inbox_source s,
			ROWS FROM (unnest(ARRAY(SELECT m.key FROM ROWS FROM (unnest(messages), unnest(verdicts))
				AS m(key, payload, attributes, ordering_key, message_id, publish_time,
					delivery_attempt, source, verdict)
				WHERE m.verdict = 'applied')), unnest(results)) AS r(key, result)
		WHERE s.name = inbox_managed_results.source AND r.result IS NOT NULL
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_results(text, @extschema@.inbox_message[], text[],
	jsonb[]) IS 'keeps what handlers returned';
