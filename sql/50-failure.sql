CREATE FUNCTION @extschema@.inbox_payload_hash(payload bytea) RETURNS bigint
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN ('x' || pg_catalog.encode(pg_catalog.substring(pg_catalog.sha256(payload), 1, 8), 'hex')
		)::bit(64)::bigint & ~1::bigint;
COMMENT ON FUNCTION @extschema@.inbox_payload_hash(bytea) IS
	'the hash of a payload given as bytes, as it is kept in inbox_claim';

CREATE FUNCTION @extschema@.inbox_blame(sqlstate text) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN CASE
		WHEN pg_catalog.left(sqlstate, 2) IN ('08', '25', '26', '28', '3D', '40', '53', '58')
			OR pg_catalog.left(sqlstate, 4) = '57P0' OR sqlstate = '55P03' THEN 'nobody'
		WHEN sqlstate = '57014' OR pg_catalog.left(sqlstate, 2) = 'XX' THEN 'unclear'
		ELSE 'message'
	END;
COMMENT ON FUNCTION @extschema@.inbox_blame(text) IS
	'whose fault an error is that a message raised alone: message, unclear (more patience), nobody';

CREATE FUNCTION @extschema@.inbox_fail_backoff(attempts integer) RETURNS double precision
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN least(600, pg_catalog.power(2, least(attempts, 11) - 1)
		* (0.8 + 0.4 * pg_catalog.random()));
COMMENT ON FUNCTION @extschema@.inbox_fail_backoff(integer) IS
	'seconds until the next attempt: 1, doubling, a fifth more or less, 600 at most';

CREATE FUNCTION @extschema@.inbox_failure_write(this_id integer, this_key text,
	message @extschema@.inbox_message, hash bigint, status text, reason text, attempts integer,
	retry_after double precision, sqlstate text, error text, detail text, hint text, context text)
	RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	INSERT INTO @extschema@.inbox_failure AS f (source_id, key, status, reason, attempts,
			payload, attributes, ordering_key, message_id, publish_time, delivery_attempt,
			payload_hash, sqlstate, error, detail, hint, context, retry_at)
		VALUES (this_id, this_key, inbox_failure_write.status, inbox_failure_write.reason,
			inbox_failure_write.attempts, (message).payload, (message).attributes,
			(message).ordering_key, (message).message_id, (message).publish_time,
			(message).delivery_attempt, hash, inbox_failure_write.sqlstate,
			inbox_failure_write.error, inbox_failure_write.detail, inbox_failure_write.hint,
			inbox_failure_write.context,
			pg_catalog.clock_timestamp() + retry_after * interval '1 second')
		ON CONFLICT (source_id, key) WHERE f.status IN ('retrying', 'dead', 'parked')
		DO UPDATE SET (status, reason, attempts, payload, attributes, ordering_key, message_id,
				publish_time, delivery_attempt, payload_hash, sqlstate, error, detail, hint,
				context, retry_at, last_failed_at)
			= (EXCLUDED.status, EXCLUDED.reason, EXCLUDED.attempts, EXCLUDED.payload,
				EXCLUDED.attributes, EXCLUDED.ordering_key, EXCLUDED.message_id,
				EXCLUDED.publish_time, EXCLUDED.delivery_attempt, EXCLUDED.payload_hash,
				EXCLUDED.sqlstate, EXCLUDED.error, EXCLUDED.detail, EXCLUDED.hint,
				EXCLUDED.context, EXCLUDED.retry_at, EXCLUDED.last_failed_at)
			WHERE f.status = 'retrying';
END;
COMMENT ON FUNCTION @extschema@.inbox_failure_write(integer, text, @extschema@.inbox_message, bigint,
	text, text, integer, double precision, text, text, text, text, text) IS
	'writes the row of a failed message, or brings it up to date';

CREATE FUNCTION @extschema@.inbox_failure_conflict(this_id integer, this_key text,
	message @extschema@.inbox_message, hash bigint) RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	INSERT INTO @extschema@.inbox_failure AS f (source_id, key, status, reason, payload, attributes,
			ordering_key, message_id, publish_time, delivery_attempt, payload_hash, sqlstate, error)
		VALUES (this_id, this_key, 'conflict', 'conflict', (message).payload,
			(message).attributes, (message).ordering_key, (message).message_id,
			(message).publish_time, (message).delivery_attempt, hash, 'IX001',
			'the key was claimed with another payload')
		ON CONFLICT (source_id, key, status, payload_hash)
			WHERE f.status IN ('conflict', 'expired') DO NOTHING;
END;
COMMENT ON FUNCTION @extschema@.inbox_failure_conflict(integer, text, @extschema@.inbox_message,
	bigint) IS 'keeps a message whose key was claimed with another payload';

-- IX006 is noted before a message runs that may have ended its backend: that attempt is not made
-- yet, and what it then fails with is not one more.
CREATE FUNCTION @extschema@.inbox_fail_attempts(failure @extschema@.inbox_failure, sqlstate text)
	RETURNS integer
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN coalesce(failure.attempts, 0) + (sqlstate IS DISTINCT FROM 'IX006'
		AND failure.sqlstate IS DISTINCT FROM 'IX006')::integer;
COMMENT ON FUNCTION @extschema@.inbox_fail_attempts(@extschema@.inbox_failure, text) IS
	'how many attempts have been made, with the one that failed now';

-- Copies of a message fail side by side, and some callers do not wait: what fails before the pause
-- is over is not one attempt more. The failure after a note is the one that was noted. A failure
-- in the future was recorded before the clock was set back, and its pause may be for ever.
CREATE FUNCTION @extschema@.inbox_fail_pause(failure @extschema@.inbox_failure)
	RETURNS double precision
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN (SELECT extract(epoch FROM failure.retry_at - clock.now)
		FROM pg_catalog.clock_timestamp() AS clock(now)
		WHERE clock.now BETWEEN failure.last_failed_at AND failure.retry_at
		AND failure.sqlstate IS DISTINCT FROM 'IX006');
COMMENT ON FUNCTION @extschema@.inbox_fail_pause(@extschema@.inbox_failure) IS
	'seconds until the next attempt can count; NULL: it counts now';

CREATE FUNCTION @extschema@.inbox_fail_verdict(source_row @extschema@.inbox_source,
	failure @extschema@.inbox_failure, this_key text, sqlstate text, halt_after integer)
	RETURNS text
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	attempts integer := @extschema@.inbox_fail_attempts(failure, sqlstate);
	blame text := @extschema@.inbox_blame(sqlstate);
	others bigint;
BEGIN
	IF source_row.halted_since IS NOT NULL THEN
		RETURN 'halted';
	ELSIF blame = 'nobody' THEN
		RETURN 'retrying';
	END IF;
	SELECT count(*) INTO others FROM @extschema@.inbox_failure f
		WHERE f.source_id = source_row.id AND f.status IN ('retrying', 'dead')
		AND f.last_failed_at > source_row.applied_at AND f.reason = 'handler'
		AND f.key <> this_key;
	IF others + 1 >= halt_after THEN
		RETURN 'halted';
	ELSIF blame = 'unclear' AND attempts >= 20
		AND failure.failed_at < clock_timestamp() - interval '24 hours'
	THEN
		RETURN 'dead';
	ELSIF blame = 'unclear' OR attempts < source_row.max_attempts THEN
		RETURN 'retrying';
	END IF;
	RETURN 'dead';
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_fail_verdict(@extschema@.inbox_source,
	@extschema@.inbox_failure, text, text, integer) IS
	'what a failed attempt of a handler means: retrying, dead, or halted';

CREATE FUNCTION @extschema@.inbox_fail_key(message @extschema@.inbox_message) RETURNS text
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	key text := coalesce(message.key, 'mid:' || message.message_id);
BEGIN
	IF key IS NULL OR octet_length(key) NOT BETWEEN 1 AND 1024 THEN
		RAISE EXCEPTION 'a failure needs a key of 1 to 1024 bytes, or a message_id instead'
			USING ERRCODE = 'IX002', DETAIL = format('The key has %s bytes, the message_id is %s.',
				coalesce(octet_length(message.key)::text, 'no'),
				coalesce(message.message_id, 'NULL'));
	END IF;
	RETURN key;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_fail_key(@extschema@.inbox_message) IS
	'the key under which a failure is kept; IX002 where there is none';

CREATE FUNCTION @extschema@.inbox_fail(message @extschema@.inbox_message, source text,
	sqlstate text, error text, detail text DEFAULT NULL, hint text DEFAULT NULL,
	context text DEFAULT NULL, reason text DEFAULT 'handler', halt_after integer DEFAULT 20)
	RETURNS TABLE (verdict text, attempts integer, retry_after double precision)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	this_id integer := @extschema@.inbox_source_ensure(source);
	this_key text := @extschema@.inbox_fail_key(message);
	hash bigint := @extschema@.inbox_payload_hash(message.payload);
	source_row @extschema@.inbox_source;
	failure @extschema@.inbox_failure;
	pause double precision;
	made integer;
BEGIN
	SELECT s.* INTO STRICT source_row FROM @extschema@.inbox_source s WHERE s.id = this_id;

	-- Claimed first, and given back unless the message is dead: a failure and a success of the
	-- same key wait for each other that way, and none is recorded of a message that was applied.
	verdict := @extschema@.inbox_claim_key(source, this_key, message.payload, message.publish_time);
	SELECT f.* INTO failure FROM @extschema@.inbox_failure f
		WHERE f.source_id = this_id AND f.key = this_key AND f.status = 'retrying' FOR UPDATE;
	attempts := coalesce(failure.attempts, 0);
	IF verdict <> 'new' THEN
		DELETE FROM @extschema@.inbox_failure f WHERE f.id = failure.id;
		IF verdict = 'conflict' THEN
			PERFORM @extschema@.inbox_failure_conflict(this_id, this_key, message, hash);
		END IF;
		RETURN NEXT;
		RETURN;
	END IF;

	IF reason = 'handler' THEN
		made := @extschema@.inbox_fail_attempts(failure, sqlstate);
		pause := CASE WHEN source_row.halted_since IS NULL
			THEN @extschema@.inbox_fail_pause(failure) END;
	END IF;
	verdict := CASE WHEN reason <> 'handler' THEN 'dead' WHEN pause IS NOT NULL THEN 'retrying'
		ELSE @extschema@.inbox_fail_verdict(source_row, failure, this_key, sqlstate, halt_after)
		END;
	-- Of the run that is noted now, not of one that has ended.
	made := made + (verdict <> 'dead' AND sqlstate IS NOT DISTINCT FROM 'IX006')::integer;
	IF verdict <> 'dead' THEN
		DELETE FROM @extschema@.inbox_claim c WHERE c.source_id = this_id AND c.key = this_key;
		retry_after := coalesce(pause, @extschema@.inbox_fail_backoff(made));
	END IF;
	IF verdict = 'halted' THEN
		UPDATE @extschema@.inbox_source s SET halted_since = clock_timestamp()
			WHERE s.id = this_id AND s.halted_since IS NULL;
	ELSIF verdict = 'dead' OR sqlstate = 'IX006'
		OR pause IS NULL AND @extschema@.inbox_blame(sqlstate) <> 'nobody'
	THEN
		attempts := CASE WHEN pause IS NULL THEN coalesce(made, attempts) ELSE attempts END;
		PERFORM @extschema@.inbox_failure_write(this_id, this_key, message, hash,
			verdict, reason, attempts, retry_after, sqlstate, error, detail, hint, context);
		IF verdict = 'dead' THEN
			PERFORM @extschema@.inbox_dead_letter_notify(f.id, sqlstate)
				FROM @extschema@.inbox_failure f
				WHERE f.source_id = this_id AND f.key = this_key AND f.status = 'dead';
		END IF;
	END IF;
	RETURN NEXT;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_fail(@extschema@.inbox_message, text, text, text, text, text,
	text, text, integer) IS
	'records a failed attempt, in a transaction of its own: retrying, dead, duplicate, conflict or '
	'halted';

