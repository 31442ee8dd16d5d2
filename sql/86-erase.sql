-- ---- personal data -------------------------------------------------------------------------

CREATE FUNCTION @extschema@.inbox_erase(key text, source text, reason text,
	forget boolean DEFAULT false, OUT failures bigint, OUT results bigint, OUT keys bigint)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	this_id integer;
	this_key text := inbox_erase.key;
	open record;
	claimed timestamptz;
	note text := 'erased: ' || inbox_erase.reason;
BEGIN
	IF coalesce(inbox_erase.reason, '') = '' THEN
		RAISE EXCEPTION 'nothing is erased without a reason'
			USING ERRCODE = 'null_value_not_allowed', HINT = 'It is kept, without the data.';
	END IF;
	SELECT s.id INTO this_id FROM @extschema@.inbox_source s WHERE s.name = inbox_erase.source;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'there is no source "%"', inbox_erase.source
			USING ERRCODE = 'no_data_found', HINT = 'SELECT name FROM inbox_source;';
	END IF;
	SELECT f.id, f.status INTO open FROM @extschema@.inbox_failure f
		WHERE f.source_id = this_id AND f.status NOT IN ('resolved', 'discarded')
		AND this_key IN (f.key, f.retry_key) ORDER BY f.id LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'failure % of this key is not settled', open.id
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = format('It is %s: its payload may be needed to apply it.', open.status),
				HINT = format('inbox_retry(%1$s) or inbox_discard(%1$s, ''the reason''), and then '
					'erase.', open.id);
	END IF;
	-- What an operator applied under another key is of this message, too.
	DELETE FROM @extschema@.inbox_claim_result r WHERE r.source_id = this_id
		AND (r.key = this_key OR r.key IN (SELECT f.retry_key FROM @extschema@.inbox_failure f
			WHERE f.source_id = this_id AND f.key = this_key));
	GET DIAGNOSTICS results = ROW_COUNT;
	IF forget THEN
		SELECT max(@extschema@.inbox_claim_age_from(c.publish_time, c.claimed_at)) INTO claimed
			FROM @extschema@.inbox_claim c WHERE c.source_id = this_id AND c.key = this_key;
		IF claimed > now() - interval '45 days' THEN
			RAISE EXCEPTION 'the key is too young to be forgotten'
				USING ERRCODE = 'object_not_in_prerequisite_state',
					DETAIL = format('Its message may still come back, and would be applied again; '
						'it is from %s.', claimed),
					HINT = 'Without forget => true everything but the key is erased; the key can '
						'follow after 45 days.';
		END IF;
		DELETE FROM @extschema@.inbox_claim c WHERE c.source_id = this_id AND c.key = this_key;
		GET DIAGNOSTICS keys = ROW_COUNT;
		DELETE FROM @extschema@.inbox_audit a USING @extschema@.inbox_failure f
			WHERE a.failure_id = f.id AND f.source_id = this_id AND this_key IN (f.key, f.retry_key);
		DELETE FROM @extschema@.inbox_failure f
			WHERE f.source_id = this_id AND this_key IN (f.key, f.retry_key);
		GET DIAGNOSTICS failures = ROW_COUNT;
	ELSE
		keys := 0;
		UPDATE @extschema@.inbox_audit a SET detail = jsonb_build_object('sqlstate', a.detail->'sqlstate')
			FROM @extschema@.inbox_failure f
			WHERE a.failure_id = f.id AND f.source_id = this_id AND this_key IN (f.key, f.retry_key);
		UPDATE @extschema@.inbox_failure f SET payload = NULL, retry_payload = NULL,
			attributes = NULL, ordering_key = NULL, error = NULL, detail = NULL, hint = NULL, context = NULL,
			settled_why = concat_ws('; ', f.settled_why, note)
			WHERE f.source_id = this_id AND this_key IN (f.key, f.retry_key);
		GET DIAGNOSTICS failures = ROW_COUNT;
	END IF;
	INSERT INTO @extschema@.inbox_audit (source_id, act, detail) VALUES (this_id, 'erased',
		jsonb_build_object('reason', inbox_erase.reason, 'failures', failures, 'results', results,
			'keys', keys));
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_erase(text, text, text, boolean) IS
	'erases what is kept of the messages of a key but the key itself; with forget, an old key, too';

