CREATE FUNCTION @extschema@.inbox_configure(source text, dedup_window interval DEFAULT NULL,
	max_attempts integer DEFAULT NULL, conflict_check boolean DEFAULT NULL,
	order_policy text DEFAULT NULL, lock_group text DEFAULT NULL, force boolean DEFAULT false,
	reason text DEFAULT NULL, settled_window interval DEFAULT NULL)
	RETURNS text
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	this_id integer;
	set_up text;
BEGIN
	IF dedup_window > interval '0' AND dedup_window < interval '45 days'
		AND NOT (force AND coalesce(reason, '') <> '')
	THEN
		RAISE EXCEPTION 'a dedup window of % forgets keys of messages that may still come', dedup_window
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'Pub/Sub keeps messages for up to 31 days, and dead letters come later.',
				HINT = 'Take 45 days or more, or say force => true, reason => ''…''.';
	ELSIF dedup_window < interval '0' OR settled_window < interval '0' OR max_attempts NOT BETWEEN 1 AND 1000
		OR order_policy NOT IN ('continue', 'park')
	THEN
		RAISE EXCEPTION 'a setting is out of its range'
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = concat_ws(', ', 'dedup_window ' || dedup_window,
					'settled_window ' || settled_window,
					'max_attempts ' || max_attempts, 'order_policy ' || order_policy),
				HINT = 'dedup_window and settled_window are 0 (for ever) or more, max_attempts 1 to 1000, order_policy '
					'''continue'' or ''park''.';
	END IF;
	this_id := @extschema@.inbox_source_ensure(source);
	-- Alone: while a message is settled that others wait for, or could be parked behind, nothing may
	-- change by which its followers and whoever settles it would miss each other.
	IF EXISTS (SELECT FROM @extschema@.inbox_source s WHERE s.id = this_id
		AND (s.order_policy <> inbox_configure.order_policy
			OR coalesce(s.lock_group, '') <> inbox_configure.lock_group))
	THEN
		PERFORM @extschema@.inbox_lock(source, exclusive => true);
	END IF;
	UPDATE @extschema@.inbox_source s SET
		dedup_window = nullif(coalesce(inbox_configure.dedup_window, s.dedup_window), interval '0'),
		settled_window = nullif(coalesce(inbox_configure.settled_window, s.settled_window),
			interval '0'),
		max_attempts = coalesce(inbox_configure.max_attempts, s.max_attempts),
		conflict_check = coalesce(inbox_configure.conflict_check, s.conflict_check),
		order_policy = coalesce(inbox_configure.order_policy, s.order_policy),
		lock_group = nullif(coalesce(inbox_configure.lock_group, s.lock_group), ''),
		configured_at = clock_timestamp(), configured_by = session_user
		WHERE s.id = this_id
		RETURNING concat(format('dedup_window %s, max_attempts %s, conflict_check %s, order_policy %s, '
			'lock_group %s', coalesce(s.dedup_window::text, 'for ever'), s.max_attempts,
			CASE WHEN s.conflict_check THEN 'on' ELSE 'off' END, s.order_policy,
			coalesce(s.lock_group, 'the source alone')), ', settled_window ' || s.settled_window)
		INTO set_up;
	-- What is set up later leaves no other trace of this.
	INSERT INTO @extschema@.inbox_audit (source_id, act, detail)
		SELECT this_id, CASE WHEN force THEN 'forced' ELSE 'configured' END, g.given
		FROM (SELECT jsonb_strip_nulls(jsonb_build_object('dedup_window', dedup_window,
			'settled_window', settled_window, 'max_attempts', max_attempts,
			'conflict_check', conflict_check, 'order_policy', order_policy,
			'lock_group', lock_group, 'reason', reason)) AS given) g
		WHERE g.given <> '{}';
	RETURN set_up;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_configure(text, interval, integer, boolean, text, text, boolean,
	text, interval) IS 'changes the settings that are given, and says what all of them are now';

