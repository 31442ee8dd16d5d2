CREATE FUNCTION @extschema@.inbox_source_ensure(source text) RETURNS integer
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	found_id integer;
BEGIN
	IF source IS NULL OR octet_length(source) NOT BETWEEN 1 AND 1024 THEN
		RAISE EXCEPTION 'a source''s name has 1 to 1024 bytes, this one %',
			coalesce(octet_length(source)::text, 'is NULL')
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Leave the argument out to use the source "default".';
	END IF;
	SELECT s.id INTO found_id FROM @extschema@.inbox_source s WHERE s.name = source;
	WHILE found_id IS NULL
	LOOP
		INSERT INTO @extschema@.inbox_source (name) VALUES (source) ON CONFLICT (name) DO NOTHING;
		SELECT s.id INTO found_id FROM @extschema@.inbox_source s WHERE s.name = source;
	END LOOP;
	RETURN found_id;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_source_ensure(text) IS
	'the id of a source, which is created at its first use';

CREATE FUNCTION @extschema@.inbox_lock_key(lock_group text) RETURNS bigint
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN pg_catalog.hashtextextended(lock_group COLLATE pg_catalog."C", 4711);
COMMENT ON FUNCTION @extschema@.inbox_lock_key(text) IS
	'the advisory lock that everything that runs a handler holds, shared or exclusive';

CREATE FUNCTION @extschema@.inbox_source_serve(source text, handler text, subscription text,
	take_over boolean, lock_group text,
	OUT source_id integer, OUT halted_since timestamptz, OUT lock_key bigint)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	found @extschema@.inbox_source;
BEGIN
	source_id := @extschema@.inbox_source_ensure(source);
	SELECT s.* INTO STRICT found FROM @extschema@.inbox_source s
		WHERE s.id = source_id FOR UPDATE;
	IF NOT take_over AND (found.handler <> inbox_source_serve.handler
		OR found.subscription <> inbox_source_serve.subscription)
	THEN
		RAISE EXCEPTION 'source "%" is served otherwise', source
			USING ERRCODE = 'IX005',
				DETAIL = format('It was last served with handler %s from subscription %s; '
					'this is handler %s from subscription %s.', found.handler,
					coalesce(found.subscription, '(none)'), inbox_source_serve.handler,
					coalesce(inbox_source_serve.subscription, '(none)')),
				HINT = 'Two handlers on one source lose messages: each finds the keys of the '
					'other. Use another --source, or say with --take-over that this one '
					'replaces what was there.';
	END IF;
	UPDATE @extschema@.inbox_source s SET
		handler = inbox_source_serve.handler,
		subscription = coalesce(inbox_source_serve.subscription, s.subscription),
		lock_group = coalesce(inbox_source_serve.lock_group, s.lock_group),
		served_at = clock_timestamp()
		WHERE s.id = source_id
		RETURNING s.halted_since, @extschema@.inbox_lock_key(coalesce(s.lock_group, s.name))
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

CREATE FUNCTION @extschema@.inbox_lock(source text, exclusive boolean DEFAULT false) RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	this_id integer := @extschema@.inbox_source_ensure(source);
	lock_key bigint;
BEGIN
	SELECT @extschema@.inbox_lock_key(coalesce(s.lock_group, s.name)) INTO STRICT lock_key
		FROM @extschema@.inbox_source s WHERE s.id = this_id;
	IF exclusive THEN
		PERFORM pg_advisory_xact_lock(lock_key);
	ELSE
		PERFORM pg_advisory_xact_lock_shared(lock_key);
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_lock(text, boolean) IS
	'takes the lock of a source''s lock group until the end of the transaction';

