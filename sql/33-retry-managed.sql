-- SPDX-License-Identifier: PostgreSQL
-- ---- operators -----------------------------------------------------------------------------

CREATE FUNCTION @extschema@.inbox_managed_retry(failure bigint, new_payload bytea, new_key text,
	OUT message @extschema@.inbox_message, OUT handler text)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	f record;
	waits_for bigint;
	claim record;
BEGIN
	-- Locked, so that of two operators the second finds it settled.
	SELECT d.*, s.name, s.handler, s.order_policy INTO f FROM @extschema@.inbox_failure d
		JOIN @extschema@.inbox_source s ON s.id = d.source_id
		WHERE d.id = failure FOR UPDATE OF d;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'there is no failure with the id %', failure USING
			ERRCODE = 'no_data_found', HINT = 'SELECT * FROM inbox_failure ORDER BY id;';
	ELSIF f.status NOT IN ('dead', 'parked', 'conflict', 'expired') THEN
		RETURN;
	END IF;
	SELECT e.id INTO waits_for FROM @extschema@.inbox_failure e
		WHERE e.source_id = f.source_id AND e.ordering_key = f.ordering_key
		AND e.status IN ('dead', 'parked')
		AND (f.status = 'parked' OR f.status = 'dead' AND f.order_policy = 'park')
		AND (coalesce(e.publish_time, e.failed_at), e.id)
			< (coalesce(f.publish_time, f.failed_at), f.id)
		ORDER BY coalesce(e.publish_time, e.failed_at), e.id LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'failure % waits for an earlier message of its ordering key', failure
			USING ERRCODE = 'IX004', DETAIL = format('That is failure %s.', waits_for),
				HINT = 'Retry or discard that one: the others follow in order.';
	ELSIF f.status = 'conflict' AND coalesce(new_key, f.key) = f.key THEN
		RAISE EXCEPTION 'failure % is a conflict: its key belongs to another payload', failure
			USING ERRCODE = 'invalid_parameter_value',
				HINT = format('inbox_retry(%s, key => ''a new key'') applies it as a message of '
					'its own, inbox_discard(%1$s, ''the reason'') ends it.', failure);
	ELSIF f.status = 'expired' AND new_key IS NULL THEN
		RAISE EXCEPTION 'failure % is expired: it may have been applied before its key was forgotten',
			failure USING ERRCODE = 'invalid_parameter_value',
				HINT = format('If it was not, inbox_retry(%s, key => %L) applies it; '
					'inbox_discard(%1$s, ''the reason'') ends it.', failure, f.key);
	ELSIF f.handler IS NULL THEN
		RAISE EXCEPTION 'the source "%" has no handler', f.name
			USING ERRCODE = 'object_not_in_prerequisite_state',
				HINT = format('SELECT inbox_serve(%L, ''the handler'', NULL);', f.name);
	END IF;
	PERFORM pg_advisory_xact_lock_shared(s.lock_key) FROM @extschema@.inbox_source s
		WHERE s.id = f.source_id;
	message := (coalesce(new_key, f.key), coalesce(new_payload, f.payload), f.attributes,
		f.ordering_key, f.message_id, f.publish_time, f.delivery_attempt, f.name);
	handler := f.handler;
	IF octet_length(message.key) NOT BETWEEN 1 AND 1024 THEN
		EXECUTE @extschema@.inbox_managed_mark(NULL, NULL)
			|| 'SELECT @extschema@.inbox_managed_check_key($1)' USING message.key;
	ELSIF message.key <> f.key OR f.status = 'expired' THEN
		-- The old key was claimed when the message died; a new one, or a forgotten one, has to be
		-- free.
		claim := @extschema@.inbox_managed_claim(f.source_id, ARRAY[message.key],
			ARRAY[@extschema@.inbox_payload_hash(message.payload)], ARRAY[message.publish_time]);
		IF claim.found_keys IS NOT NULL THEN
			RAISE EXCEPTION 'the key "%" is claimed already', message.key
				USING ERRCODE = 'IX001', HINT = 'Choose one that no message has.';
		END IF;
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_retry(bigint, bytea, text) IS
	'the first part of inbox_retry_one: locks the failure; no message where it was settled already';

CREATE FUNCTION @extschema@.inbox_managed_resolve(failure bigint, new_payload bytea, new_key text)
	RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM @extschema@.inbox_managed_applied(s.id) FROM @extschema@.inbox_failure f
		JOIN @extschema@.inbox_source n ON n.id = f.source_id,
		@extschema@.inbox_managed_source(n.name) s WHERE f.id = failure AND s.troubled;
	UPDATE @extschema@.inbox_failure f SET status = 'resolved', retry_key = new_key,
		retry_payload = new_payload, settled_at = clock_timestamp(), settled_by = session_user,
		settled_why = 'retried'
		WHERE f.id = failure AND f.status IN ('dead', 'parked', 'conflict', 'expired');
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_resolve(bigint, bytea, text) IS
	'the last part of inbox_retry_one: notes that it was applied';

CREATE FUNCTION @extschema@.inbox_retry_one(id bigint, payload bytea, key text) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	failure record;
BEGIN
	IF id IS NULL THEN
		RAISE EXCEPTION 'the id is NULL' USING ERRCODE = 'null_value_not_allowed';
	END IF;
	failure := @extschema@.inbox_managed_retry(id, payload, key);
	IF failure.handler IS NULL THEN
		RETURN false;
	END IF;
	PERFORM @extschema@.inbox_managed_run(ARRAY[failure.message], NULL, '{applied}',
		@extschema@.inbox_managed_handler(@extschema@.inbox_managed_handler_oid(failure.handler)),
		(failure.message).source, false);
	PERFORM @extschema@.inbox_managed_resolve(id, payload, key);
	RETURN true;
END
$$;

