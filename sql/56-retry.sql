CREATE FUNCTION @extschema@.inbox_retry_alone(of_lock bigint) RETURNS boolean
	LANGUAGE sql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT coalesce(bool_or(s.order_policy = 'park' OR EXISTS (
		SELECT FROM @extschema@.inbox_failure p
		WHERE p.source_id = s.id AND p.status = 'parked')), false)
	FROM @extschema@.inbox_source s WHERE s.lock_key = of_lock;
END;
COMMENT ON FUNCTION @extschema@.inbox_retry_alone(bigint) IS
	'whether messages wait for others where this is the lock';

CREATE FUNCTION @extschema@.inbox_retry_lock(these bigint[]) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	of_lock bigint;
	locks bigint[] := '{}';
BEGIN
	LOOP
		-- Which lock it is may have changed while it was waited for.
		SELECT min(s.lock_key) INTO of_lock FROM @extschema@.inbox_source s
			WHERE s.id IN (SELECT f.source_id FROM @extschema@.inbox_failure f WHERE f.id = ANY (these))
			AND s.lock_key <> ALL (locks);
		EXIT WHEN of_lock IS NULL;
		-- Alone where messages wait for others: what is parked while others are released would stay.
		-- That may have changed, too; then the lock is given back, or two who share it would each wait
		-- for the other to be alone.
		IF NOT @extschema@.inbox_retry_alone(of_lock) THEN
			BEGIN
				PERFORM pg_advisory_xact_lock_shared(of_lock);
				IF @extschema@.inbox_retry_alone(of_lock) THEN
					RAISE SQLSTATE 'IX000';
				END IF;
				locks := locks || of_lock;
			EXCEPTION WHEN SQLSTATE 'IX000' THEN
				NULL;
			END;
		END IF;
		IF of_lock <> ALL (locks) THEN
			PERFORM pg_advisory_xact_lock(of_lock);
			locks := locks || of_lock;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_retry_lock(bigint[]) IS
	'takes the locks of the sources of these failures';

CREATE FUNCTION @extschema@.inbox_retry_ready(these bigint[]) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	source_row record;
BEGIN
	FOR source_row IN
		SELECT s.name, s.handler FROM @extschema@.inbox_source s
		WHERE s.id IN (SELECT f.source_id FROM @extschema@.inbox_failure f WHERE f.id = ANY (these))
		ORDER BY s.id
	LOOP
		IF source_row.handler IS NULL THEN
			RAISE EXCEPTION 'the source "%" has no handler', source_row.name
				USING ERRCODE = 'object_not_in_prerequisite_state',
					HINT = format('SELECT inbox_serve(%L, ''the handler'', NULL);', source_row.name);
		END IF;
		PERFORM @extschema@.inbox_handler(source_row.handler);
	END LOOP;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_retry_ready(bigint[]) IS
	'an error where the caller cannot run the handler of these failures, which is not their fault';

CREATE FUNCTION @extschema@.inbox_retry_failed(this_id bigint, sqlstate text, error text,
	detail text, hint text, context text) RETURNS void
	LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT @extschema@.inbox_dead_letter_notify(f.id, inbox_retry_failed.sqlstate)
		FROM @extschema@.inbox_failure f WHERE f.id = this_id AND f.status = 'parked';
	WITH failed AS (
		UPDATE @extschema@.inbox_failure f SET status = 'dead',
			reason = CASE f.status WHEN 'parked' THEN 'handler' ELSE f.reason END,
			attempts = f.attempts + 1, sqlstate = inbox_retry_failed.sqlstate,
			error = inbox_retry_failed.error, detail = inbox_retry_failed.detail,
			hint = inbox_retry_failed.hint, context = inbox_retry_failed.context,
			last_failed_at = pg_catalog.clock_timestamp()
		WHERE f.id = this_id AND f.status IN ('dead', 'parked')
		RETURNING f.*
	)
	INSERT INTO @extschema@.inbox_audit (at, source_id, failure_id, act, detail)
		SELECT f.last_failed_at, f.source_id, f.id, 'retried',
			pg_catalog.jsonb_build_object('sqlstate', f.sqlstate, 'error', f.error)
		FROM failed f;
END;
COMMENT ON FUNCTION @extschema@.inbox_retry_failed(bigint, text, text, text, text, text) IS
	'notes that a message failed once more, and who tried';

-- As the caller: what is fired is his. The comment is how an error's CONTEXT tells whose it is.
-- Twice, as a trigger may put itself off once more.
CREATE FUNCTION @extschema@.inbox_constraints_check(whose text) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	FOR pass IN 1 .. 2 LOOP
		EXECUTE pg_catalog.format('SET CONSTRAINTS ALL IMMEDIATE /* of %s */', whose);
	END LOOP;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_constraints_check(text) IS
	'runs what was deferred to the end of the transaction';

-- Undoes that for what comes next. What was set before cannot be asked for, so each constraint is
-- as it was created. All are deferred where one cannot be named: its schema may be closed to the
-- caller, or a constraint by the same name cannot be deferred.
CREATE FUNCTION @extschema@.inbox_constraints_defer() RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	names text;
	ambiguous boolean;
BEGIN
	SELECT string_agg(DISTINCT format('%I.%I', n.nspname, c.conname), ', '),
			bool_or(NOT has_schema_privilege(n.oid, 'USAGE') OR EXISTS (
				SELECT FROM pg_constraint o WHERE o.conname = c.conname
				AND o.connamespace = c.connamespace AND NOT o.condeferrable))
		INTO names, ambiguous
		FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
		WHERE c.condeferred AND NOT pg_is_other_temp_schema(n.oid);
	IF names IS NOT NULL THEN
		EXECUTE format('SET CONSTRAINTS %s DEFERRED',
			CASE WHEN ambiguous THEN 'ALL' ELSE names END);
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_constraints_defer() IS
	'defers again what is created as INITIALLY DEFERRED';

CREATE FUNCTION @extschema@.inbox_release_next(head bigint) RETURNS bigint
	LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT CASE WHEN n.status = 'parked' THEN n.id END
	FROM @extschema@.inbox_failure h
		JOIN @extschema@.inbox_failure n USING (source_id, ordering_key)
	WHERE h.id = head AND n.status IN ('dead', 'parked')
	ORDER BY coalesce(n.publish_time, n.failed_at), n.id LIMIT 1;
END;
COMMENT ON FUNCTION @extschema@.inbox_release_next(bigint) IS
	'the first message that waits in the ordering key of a failure, if no dead one is before it';

-- What is deferred is checked with each message, or nobody could tell whose fault it is.
CREATE FUNCTION @extschema@.inbox_release(head bigint) RETURNS integer
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	next_id bigint := @extschema@.inbox_release_next(head);
	released integer := 0;
	detail pg_catalog.text;
	hint pg_catalog.text;
	context pg_catalog.text;
BEGIN
	IF next_id IS NULL THEN
		RETURN 0;
	END IF;
	PERFORM @extschema@.inbox_retry_ready(ARRAY[head]);
	PERFORM @extschema@.inbox_constraints_check(pg_catalog.format(
		'failure %s, or what this transaction did before it', head));
	WHILE next_id IS NOT NULL LOOP
		PERFORM @extschema@.inbox_constraints_defer();
		BEGIN
			PERFORM @extschema@.inbox_retry_one(next_id, NULL, NULL);
			PERFORM @extschema@.inbox_constraints_check(pg_catalog.format('failure %s', next_id));
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
		released := released OPERATOR(pg_catalog.+) 1;
		next_id := @extschema@.inbox_release_next(head);
	END LOOP;
	PERFORM @extschema@.inbox_constraints_defer();
	RETURN released;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_release(bigint) IS
	'applies, in order, the messages that waited for one that was settled, up to the next failure';

CREATE FUNCTION @extschema@.inbox_retry_check(this_id bigint, corrected boolean) RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE
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
DECLARE
	applied boolean;
BEGIN
	PERFORM @extschema@.inbox_retry_lock(ARRAY[id]);
	PERFORM @extschema@.inbox_retry_check(id, payload IS NOT NULL);
	-- The comment is in the CONTEXT of errors: they undo all of the call, a note of it included.
	EXECUTE pg_catalog.format('/* when this fails, failure %s stays as it is */ '
		'SELECT @extschema@.inbox_retry_one($1, $2, $3)', id) INTO applied USING id, payload, key;
	IF applied THEN
		PERFORM @extschema@.inbox_release(id);
	END IF;
	RETURN applied;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_retry(bigint, bytea, text) IS
	'applies a message that is dead, parked, in conflict or expired, as it is or corrected, and then what '
	'waited for it; false: it was settled already';

-- An envelope is no payload, and a key that nobody has given is none to apply a message under.
CREATE FUNCTION @extschema@.inbox_retry_find(source text, status text, sqlstate text,
	failed_from timestamptz, failed_to timestamptz, ordering_key text, without_key boolean)
	RETURNS TABLE (id bigint, failed_at timestamptz, ready boolean)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT f.id, f.failed_at, f.reason NOT IN ('unstorable', 'undecodable') AND (without_key
		OR f.reason <> 'no_key' AND (f.key = 'mid:' || f.message_id) IS NOT TRUE)
	FROM @extschema@.inbox_failure f JOIN @extschema@.inbox_source s ON s.id = f.source_id
	WHERE f.status = inbox_retry_find.status AND (source IS NULL OR s.name = source)
	AND (inbox_retry_find.sqlstate IS NULL OR f.sqlstate = inbox_retry_find.sqlstate)
	AND (failed_from IS NULL OR f.failed_at >= failed_from)
	AND (failed_to IS NULL OR f.failed_at < failed_to)
	AND (inbox_retry_find.ordering_key IS NULL OR f.ordering_key = inbox_retry_find.ordering_key)
$$;
COMMENT ON FUNCTION @extschema@.inbox_retry_find(text, text, text, timestamptz, timestamptz, text,
	boolean) IS 'the failures that are asked for, and whether they can be applied as they are';

CREATE FUNCTION @extschema@.inbox_retry_pick(source text, status text, sqlstate text,
	failed_from timestamptz, failed_to timestamptz, ordering_key text, up_to integer,
	without_key boolean, OUT these bigint[], OUT left_out bigint)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF status IS NULL OR status NOT IN ('dead', 'parked') THEN
		RAISE EXCEPTION 'only dead and parked messages can be retried together, not %',
			coalesce(status, 'NULL') USING ERRCODE = 'invalid_parameter_value',
			HINT = 'A conflict needs a new key for each: inbox_retry(id, key => …).';
	END IF;
	these := ARRAY(SELECT f.id FROM @extschema@.inbox_retry_find(source, status, sqlstate,
		failed_from, failed_to, ordering_key, without_key) f
		WHERE f.ready);
	SELECT count(*) INTO left_out FROM @extschema@.inbox_retry_find(source, status, sqlstate,
		failed_from, failed_to, ordering_key, without_key) f WHERE f.ready IS NOT TRUE;
	PERFORM @extschema@.inbox_retry_lock(these);
	-- What another operator is at is left to him.
	these := ARRAY(SELECT f.id FROM @extschema@.inbox_failure f
		WHERE f.id = ANY (these) AND f.status = inbox_retry_pick.status
		ORDER BY coalesce(f.publish_time, f.failed_at), f.id LIMIT up_to FOR UPDATE SKIP LOCKED);
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_retry_pick(text, text, text, timestamptz, timestamptz, text,
	integer, boolean) IS
	'the failures that inbox_retry_all is about, locked, and how many are for inbox_retry alone';

CREATE FUNCTION @extschema@.inbox_retry_all(source text DEFAULT NULL, status text DEFAULT 'dead',
	sqlstate text DEFAULT NULL, failed_from timestamptz DEFAULT NULL,
	failed_to timestamptz DEFAULT NULL, ordering_key text DEFAULT NULL, up_to integer DEFAULT 1000,
	without_key boolean DEFAULT false)
	RETURNS TABLE (resolved bigint, failed bigint, skipped bigint, left_out bigint)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	these bigint[];
	this_id bigint;
	detail pg_catalog.text;
	hint pg_catalog.text;
	context pg_catalog.text;
BEGIN
	SELECT p.these, p.left_out INTO these, left_out
		FROM @extschema@.inbox_retry_pick(source, status, inbox_retry_all.sqlstate, failed_from,
			failed_to, ordering_key, up_to, without_key) p;
	resolved := 0;
	failed := 0;
	skipped := 0;
	PERFORM @extschema@.inbox_retry_ready(these);
	PERFORM @extschema@.inbox_constraints_check('what this transaction did before inbox_retry_all');
	FOREACH this_id IN ARRAY these LOOP
		PERFORM @extschema@.inbox_constraints_defer();
		BEGIN
			-- One of them that another has released is applied by now.
			IF @extschema@.inbox_retry(this_id) THEN
				PERFORM @extschema@.inbox_constraints_check(
					pg_catalog.format('failure %s', this_id));
			END IF;
			resolved := resolved OPERATOR(pg_catalog.+) 1;
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
	PERFORM @extschema@.inbox_constraints_defer();
	RETURN NEXT;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_retry_all(text, text, text, timestamptz, timestamptz, text,
	integer, boolean) IS
	'applies dead or parked messages, oldest first; one that fails again stays dead, and those '
	'without a key or a payload are left to inbox_retry';

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

