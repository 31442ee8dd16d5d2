CREATE FUNCTION @extschema@.inbox_retry_lock(these bigint[]) RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	source_row record;
BEGIN
	-- Alone where messages wait for others: what is parked while others are released would stay.
	FOR source_row IN
		SELECT s.lock_key, bool_or(s.order_policy = 'park' OR EXISTS (
			SELECT FROM @extschema@.inbox_failure p
			WHERE p.source_id = s.id AND p.status = 'parked')) AS alone
		FROM @extschema@.inbox_source s
		WHERE s.id IN (SELECT f.source_id FROM @extschema@.inbox_failure f WHERE f.id = ANY (these))
		GROUP BY s.lock_key ORDER BY s.lock_key
	LOOP
		IF source_row.alone THEN
			PERFORM pg_advisory_xact_lock(source_row.lock_key);
		ELSE
			PERFORM pg_advisory_xact_lock_shared(source_row.lock_key);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_retry_lock(bigint[]) IS
	'takes the locks of the sources of these failures';

CREATE FUNCTION @extschema@.inbox_retry_failed(this_id bigint, sqlstate text, error text,
	detail text, hint text, context text) RETURNS void
	LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
BEGIN ATOMIC
	UPDATE @extschema@.inbox_failure f SET status = 'dead',
		reason = CASE f.status WHEN 'parked' THEN 'handler' ELSE f.reason END,
		attempts = f.attempts + 1, sqlstate = inbox_retry_failed.sqlstate,
		error = inbox_retry_failed.error, detail = inbox_retry_failed.detail,
		hint = inbox_retry_failed.hint, context = inbox_retry_failed.context,
		last_failed_at = pg_catalog.clock_timestamp()
	WHERE f.id = this_id AND f.status IN ('dead', 'parked');
END;
COMMENT ON FUNCTION @extschema@.inbox_retry_failed(bigint, text, text, text, text, text) IS
	'notes that a message failed once more';

CREATE FUNCTION @extschema@.inbox_release_next(head bigint) RETURNS bigint
	LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
BEGIN ATOMIC
	SELECT CASE WHEN n.status = 'parked' THEN n.id END
	FROM @extschema@.inbox_failure h
		JOIN @extschema@.inbox_failure n USING (source_id, ordering_key)
	WHERE h.id = head AND n.status IN ('dead', 'parked')
	ORDER BY coalesce(n.publish_time, n.failed_at), n.id LIMIT 1;
END;
COMMENT ON FUNCTION @extschema@.inbox_release_next(bigint) IS
	'the first message that waits in the ordering key of a failure, if no dead one is before it';

CREATE FUNCTION @extschema@.inbox_release(head bigint) RETURNS integer
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	next_id bigint;
	released integer := 0;
	detail text;
	hint text;
	context text;
BEGIN
	LOOP
		next_id := @extschema@.inbox_release_next(head);
		EXIT WHEN next_id IS NULL;
		BEGIN
			PERFORM @extschema@.inbox_retry_one(next_id, NULL, NULL);
			released := released OPERATOR(pg_catalog.+) 1;
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT,
				context = PG_EXCEPTION_CONTEXT;
			IF @extschema@.inbox_blame(SQLSTATE) OPERATOR(pg_catalog.=) 'nobody' THEN
				RAISE;
			END IF;
			PERFORM @extschema@.inbox_retry_failed(next_id, SQLSTATE, SQLERRM, detail, hint,
				context);
			EXIT;
		END;
	END LOOP;
	RETURN released;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_release(bigint) IS
	'applies, in order, the messages that waited for one that was settled, up to the next failure';

CREATE FUNCTION @extschema@.inbox_retry_check(this_id bigint, corrected boolean) RETURNS void
	LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	failure record;
BEGIN
	SELECT f.error INTO failure FROM @extschema@.inbox_failure f
		WHERE f.id = this_id AND f.status = 'dead' AND f.reason IN ('unstorable', 'undecodable');
	IF FOUND AND NOT corrected THEN
		RAISE EXCEPTION 'failure % has no payload that a handler could take', this_id
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = format('What is kept is its whole envelope: %s.', failure.error),
				HINT = format('inbox_retry(%s, payload => …, key => …) applies what you make of it, '
					'inbox_discard(%s, ''the reason'') ends it.', this_id, this_id);
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_retry_check(bigint, boolean) IS
	'the part of inbox_retry that refuses to run a handler with an envelope for a payload';

CREATE FUNCTION @extschema@.inbox_retry(id bigint, payload bytea DEFAULT NULL,
	key text DEFAULT NULL) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	PERFORM @extschema@.inbox_retry_lock(ARRAY[id]);
	PERFORM @extschema@.inbox_retry_check(id, payload IS NOT NULL);
	IF NOT @extschema@.inbox_retry_one(id, payload, key) THEN
		RETURN false;
	END IF;
	PERFORM @extschema@.inbox_release(id);
	RETURN true;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_retry(bigint, bytea, text) IS
	'applies a message that is dead, parked or in conflict, as it is or corrected, and then what '
	'waited for it; false: it was settled already';

CREATE FUNCTION @extschema@.inbox_retry_pick(source text, status text, sqlstate text,
	failed_from timestamptz, failed_to timestamptz, ordering_key text, up_to integer)
	RETURNS SETOF bigint
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	these bigint[];
BEGIN
	IF status IS NULL OR status NOT IN ('dead', 'parked') THEN
		RAISE EXCEPTION 'only dead and parked messages can be retried together, not %',
			coalesce(status, 'NULL') USING ERRCODE = 'invalid_parameter_value',
			HINT = 'A conflict needs a new key for each: inbox_retry(id, key => …).';
	END IF;
	these := ARRAY(SELECT f.id FROM @extschema@.inbox_failure f
		JOIN @extschema@.inbox_source s ON s.id = f.source_id
		WHERE f.status = inbox_retry_pick.status AND f.reason NOT IN ('unstorable', 'undecodable')
		AND (source IS NULL OR s.name = source)
		AND (inbox_retry_pick.sqlstate IS NULL OR f.sqlstate = inbox_retry_pick.sqlstate)
		AND (failed_from IS NULL OR f.failed_at >= failed_from)
		AND (failed_to IS NULL OR f.failed_at < failed_to)
		AND (inbox_retry_pick.ordering_key IS NULL
			OR f.ordering_key = inbox_retry_pick.ordering_key)
		ORDER BY f.failed_at, f.id LIMIT up_to);
	PERFORM @extschema@.inbox_retry_lock(these);
	-- What another operator is at is left to him.
	RETURN QUERY SELECT f.id FROM @extschema@.inbox_failure f
		WHERE f.id = ANY (these) AND f.status = inbox_retry_pick.status
		ORDER BY f.failed_at, f.id FOR UPDATE SKIP LOCKED;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_retry_pick(text, text, text, timestamptz, timestamptz, text,
	integer) IS 'the failures that inbox_retry_all is about, locked';

CREATE FUNCTION @extschema@.inbox_retry_all(source text DEFAULT NULL, status text DEFAULT 'dead',
	sqlstate text DEFAULT NULL, failed_from timestamptz DEFAULT NULL,
	failed_to timestamptz DEFAULT NULL, ordering_key text DEFAULT NULL, up_to integer DEFAULT 1000)
	RETURNS TABLE (resolved bigint, failed bigint, skipped bigint)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	this_id bigint;
	detail text;
	hint text;
	context text;
BEGIN
	resolved := 0;
	failed := 0;
	skipped := 0;
	FOR this_id IN SELECT @extschema@.inbox_retry_pick(source, status,
		inbox_retry_all.sqlstate, failed_from, failed_to, ordering_key, up_to)
	LOOP
		BEGIN
			IF @extschema@.inbox_retry(this_id) THEN
				resolved := resolved OPERATOR(pg_catalog.+) 1;
			ELSE
				skipped := skipped OPERATOR(pg_catalog.+) 1;
			END IF;
		EXCEPTION WHEN SQLSTATE 'IX004' THEN
			skipped := skipped OPERATOR(pg_catalog.+) 1;
		WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT,
				context = PG_EXCEPTION_CONTEXT;
			IF @extschema@.inbox_blame(SQLSTATE) OPERATOR(pg_catalog.=) 'nobody' THEN
				RAISE;
			END IF;
			PERFORM @extschema@.inbox_retry_failed(this_id, SQLSTATE, SQLERRM, detail, hint,
				context);
			failed := failed OPERATOR(pg_catalog.+) 1;
		END;
	END LOOP;
	RETURN NEXT;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_retry_all(text, text, text, timestamptz, timestamptz, text,
	integer) IS 'applies dead or parked messages, oldest first; one that fails again stays dead';

CREATE FUNCTION @extschema@.inbox_discard_one(this_id bigint, reason text) RETURNS boolean
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	failure @extschema@.inbox_failure;
	discarded boolean;
BEGIN
	IF reason IS NULL OR reason = '' THEN
		RAISE EXCEPTION 'a message is not discarded without a reason'
			USING ERRCODE = 'null_value_not_allowed',
				HINT = 'It is kept with the message, for whoever asks where it went.';
	END IF;
	SELECT f.* INTO failure FROM @extschema@.inbox_failure f WHERE f.id = this_id;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'there is no failure with the id %', this_id USING
			ERRCODE = 'no_data_found', HINT = 'SELECT * FROM inbox_failure ORDER BY id;';
	END IF;
	-- What has no claim yet gets one, or it would be applied when it comes again. Before the row
	-- is locked: a batch that is applying it has the claim, and wants the row next.
	IF failure.status IN ('retrying', 'expired') THEN
		PERFORM @extschema@.inbox_claim_key(s.name, failure.key, failure.payload,
			failure.publish_time) FROM @extschema@.inbox_source s WHERE s.id = failure.source_id;
	END IF;
	UPDATE @extschema@.inbox_failure f SET status = 'discarded', settled_why = inbox_discard_one.reason,
		settled_at = clock_timestamp(), settled_by = session_user
		WHERE f.id = this_id
		AND f.status IN ('retrying', 'dead', 'parked', 'conflict', 'expired');
	discarded := FOUND;
	PERFORM @extschema@.inbox_durable(true);
	RETURN discarded;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_discard_one(bigint, text) IS
	'inbox_discard without the messages that wait for this one';

CREATE FUNCTION @extschema@.inbox_discard(id bigint, reason text) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	PERFORM @extschema@.inbox_retry_lock(ARRAY[id]);
	IF NOT @extschema@.inbox_discard_one(id, reason) THEN
		RETURN false;
	END IF;
	PERFORM @extschema@.inbox_release(id);
	RETURN true;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_discard(bigint, text) IS
	'ends a message that will never be applied, and applies what waited for it; false: it was '
	'settled already';

