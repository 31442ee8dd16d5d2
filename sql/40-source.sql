CREATE FUNCTION @extschema@.inbox_cluster() RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('%s/%s', c.system_identifier,
		substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))
	FROM pg_control_system() c
$$;
COMMENT ON FUNCTION @extschema@.inbox_cluster() IS
	'system identifier and timeline: another one may lack what was committed on the one before';

CREATE FUNCTION @extschema@.inbox_source_serve(source text, handler text, subscription text,
	take_over boolean, lock_group text,
	OUT source_id integer, OUT halted_since timestamptz, OUT lock_key bigint)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	found @extschema@.inbox_source;
	here text := @extschema@.inbox_cluster();
	otherwise boolean;
BEGIN
	source_id := @extschema@.inbox_source_ensure(source);
	-- Who has the lock that was its lock until now would not be waited for.
	IF EXISTS (SELECT FROM @extschema@.inbox_source s WHERE s.id = source_id
		AND s.lock_group IS DISTINCT FROM coalesce(inbox_source_serve.lock_group, s.lock_group))
	THEN
		PERFORM @extschema@.inbox_lock(source, exclusive => true);
	END IF;
	SELECT s.* INTO STRICT found FROM @extschema@.inbox_source s
		WHERE s.id = source_id FOR UPDATE;
	otherwise := coalesce(found.handler <> inbox_source_serve.handler
		OR found.subscription <> inbox_source_serve.subscription, false);
	IF otherwise AND NOT take_over THEN
		RAISE EXCEPTION 'source "%" is served otherwise', source
			USING ERRCODE = 'IX005',
				DETAIL = format('It was last served with handler %s from subscription %s; '
					'this is handler %s from subscription %s.', found.handler,
					coalesce(found.subscription, '(none)'), inbox_source_serve.handler,
					coalesce(inbox_source_serve.subscription, '(none)')),
				HINT = 'Two handlers on one source lose messages: each finds the keys of the '
					'other. Use another --source, or say with --take-over that this one '
					'replaces what was there.';
	ELSIF otherwise THEN
		INSERT INTO @extschema@.inbox_audit (source_id, act, detail)
			VALUES (found.id, 'taken over', jsonb_build_object(
				'handler', inbox_source_serve.handler,
				'subscription', inbox_source_serve.subscription,
				'replaces', jsonb_build_object('handler', found.handler,
					'subscription', found.subscription)));
	END IF;
	-- What is claimed from now on was not in the backup, or not yet on the standby.
	IF found.cluster <> here THEN
		INSERT INTO @extschema@.inbox_audit (source_id, act, detail)
			VALUES (found.id, 'moved', jsonb_build_object('from', found.cluster, 'to', here));
	END IF;
	UPDATE @extschema@.inbox_source s SET
		handler = inbox_source_serve.handler,
		subscription = coalesce(inbox_source_serve.subscription, s.subscription),
		lock_group = coalesce(inbox_source_serve.lock_group, s.lock_group),
		served_at = clock_timestamp(),
		cluster = here
		WHERE s.id = source_id
		RETURNING s.halted_since, s.lock_key
		INTO halted_since, lock_key;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_source_serve(text, text, text, boolean, text) IS
	'the part of inbox_serve that writes';

CREATE FUNCTION @extschema@.inbox_serve(source text, handler text, subscription text,
	take_over boolean DEFAULT false, lock_group text DEFAULT NULL)
	RETURNS TABLE (source_id integer, handler_signature text, halted_since timestamptz,
		lock_key bigint)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	handler_signature := @extschema@.inbox_handler(handler);
	SELECT s.source_id, s.halted_since, s.lock_key
		INTO source_id, halted_since, lock_key
		FROM @extschema@.inbox_source_serve(source, handler_signature, subscription, take_over,
			lock_group) s;
	RETURN NEXT;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_serve(text, text, text, boolean, text) IS
	'checks a handler, and notes that a source is served with it from a subscription';

CREATE FUNCTION @extschema@.inbox_served(source text)
	RETURNS TABLE (handler text, subscription text, served_at timestamptz,
		halted_since timestamptz, dedup_window interval)
	LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT s.handler, s.subscription, s.served_at, s.halted_since, s.dedup_window
	FROM @extschema@.inbox_source s WHERE s.name = inbox_served.source
$$;
COMMENT ON FUNCTION @extschema@.inbox_served(text) IS
	'what a source was last served with; no row where it never was used';

CREATE FUNCTION @extschema@.inbox_lock(source text, exclusive boolean DEFAULT false) RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	this_id integer := @extschema@.inbox_source_ensure(source);
	lock_key bigint;
	held bigint;
BEGIN
	LOOP
		-- While it was waited for, another one may have become the source's lock.
		SELECT s.lock_key INTO STRICT lock_key FROM @extschema@.inbox_source s WHERE s.id = this_id;
		EXIT WHEN lock_key = held;
		IF exclusive THEN
			PERFORM pg_advisory_xact_lock(lock_key);
		ELSE
			PERFORM pg_advisory_xact_lock_shared(lock_key);
		END IF;
		held := lock_key;
	END LOOP;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_lock(text, boolean) IS
	'takes the lock of a source''s lock group until the end of the transaction';

