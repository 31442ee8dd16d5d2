-- SPDX-License-Identifier: PostgreSQL
-- What the library does in the extension, for servers that load none. What runs a handler runs as
-- its caller, with the caller's search_path, so every name and operator in it is qualified; what
-- reads or writes the tables runs as their owner. No handler runs in an EXCEPTION block: that would
-- be a savepoint, and a handler's error is to undo everything and to pass as it is.

CREATE FUNCTION @extschema@.inbox_version() RETURNS text
	LANGUAGE sql STABLE STRICT PARALLEL SAFE
	RETURN '@version@';
COMMENT ON FUNCTION @extschema@.inbox_version() IS
	'the version of these functions; compare it with inbox_managed.version';

-- ---- promises ------------------------------------------------------------------------------

CREATE FUNCTION @extschema@.inbox_managed_writable(called text) RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF current_setting('transaction_read_only')::boolean THEN
		RAISE EXCEPTION 'cannot execute % in a read-only transaction', called
			USING ERRCODE = 'read_only_sql_transaction';
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_writable(text) IS
	'refuses what would write in a read-only transaction, before it finds that it has nothing to';

-- At the end of a call: whatever a handler has set, it has set by then.
CREATE FUNCTION @extschema@.inbox_managed_floor() RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	IF pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=)
		ANY ('{off,local,remote_write}'::pg_catalog.text[])
	THEN
		PERFORM pg_catalog.set_config('synchronous_commit', 'on', true);
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_floor() IS
	'raises synchronous_commit for this transaction to what a verdict needs';

-- A transaction that only found duplicates writes no WAL, so that its COMMIT would wait neither for
-- the disk nor for a standby; with a record of its own it waits for all that it has read.
CREATE FUNCTION @extschema@.inbox_durable(proof boolean) RETURNS void
	LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM @extschema@.inbox_managed_floor();
	IF proof THEN
		PERFORM pg_logical_emit_message(true, 'inbox', '');
	END IF;
END
$$;

-- ---- sources -------------------------------------------------------------------------------

CREATE FUNCTION @extschema@.inbox_managed_source(source text)
	RETURNS TABLE (id integer, lock_key bigint, compares boolean, parks boolean,
		purged_before timestamptz, troubled boolean, holding boolean)
	LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT s.id, s.lock_key, s.conflict_check, s.order_policy = 'park', s.purged_before,
		s.halted_since IS NOT NULL OR EXISTS (SELECT FROM @extschema@.inbox_failure f
			WHERE f.source_id = s.id AND f.status IN ('retrying', 'dead')
			AND f.last_failed_at > s.applied_at),
		EXISTS (SELECT FROM @extschema@.inbox_failure f
			WHERE f.source_id = s.id AND f.status IN ('retrying', 'dead', 'parked')
			AND (f.status <> 'dead' OR s.order_policy = 'park' AND f.ordering_key IS NOT NULL))
	FROM @extschema@.inbox_source s WHERE s.name = inbox_managed_source.source;
END;
COMMENT ON FUNCTION @extschema@.inbox_managed_source(text) IS
	'all that a call has to know of its source';

CREATE FUNCTION @extschema@.inbox_source_ensure(source text) RETURNS integer
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	this_id integer;
BEGIN
	IF source IS NULL THEN
		RAISE EXCEPTION 'the source is NULL' USING ERRCODE = 'null_value_not_allowed',
			HINT = 'Leave it out for the source "default".';
	ELSIF octet_length(source) NOT BETWEEN 1 AND 1024 THEN
		RAISE EXCEPTION 'the name of a source has 1 to 1024 bytes, this one %', octet_length(source)
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'Leave it out for the source "default".';
	END IF;
	FOR round IN 0 .. 10 LOOP
		SELECT s.id INTO this_id FROM @extschema@.inbox_source s WHERE s.name = source;
		IF FOUND THEN
			RETURN this_id;
		END IF;
		INSERT INTO @extschema@.inbox_source (name) VALUES (source) ON CONFLICT (name) DO NOTHING;
	END LOOP;
	RAISE EXCEPTION 'the source "%" was neither inserted into inbox_source nor found there', source
		USING ERRCODE = 'object_not_in_prerequisite_state',
			DETAIL = 'A trigger or a rule on the table may keep rows out of it.',
			HINT = 'SELECT * FROM @extschema@.inbox_check();';
END
$$;

-- ---- messages ------------------------------------------------------------------------------

-- The text of a statement is part of the CONTEXT of its errors, and a line of this form is how a
-- caller finds out which message failed. JSON keeps a key in its line, and here in its comment too.
CREATE FUNCTION @extschema@.inbox_managed_mark(ordinal integer, key text) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE
	RETURN E'/*\ninbox: {' || coalesce('"ordinal":' || ordinal || ',', '') || '"key":'
		|| coalesce(CASE WHEN pg_catalog.strpos(key, '*') = 0 THEN pg_catalog.to_json(key)::text
			ELSE pg_catalog.replace(pg_catalog.replace(pg_catalog.to_json(key)::text,
				'/*', '/\u002a'), '*/', '*\/') END, 'null') || E'}\n*/ ';
COMMENT ON FUNCTION @extschema@.inbox_managed_mark(integer, text) IS
	'the comment that names a message in the CONTEXT of errors';

CREATE FUNCTION @extschema@.inbox_managed_check_key(key text) RETURNS void
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF key IS NULL OR octet_length(key) NOT BETWEEN 1 AND 1024 THEN
		RAISE EXCEPTION 'the idempotency key %', CASE WHEN key IS NULL THEN 'is NULL'
				WHEN key = '' THEN 'is empty' ELSE 'is too long' END
			USING ERRCODE = 'IX002', DETAIL = CASE WHEN octet_length(key) > 0
					THEN format('It has %s bytes.', octet_length(key))
					ELSE 'Nothing tells this message from another.' END,
				HINT = 'A key is 1 to 1024 bytes without a NUL byte; it is taken as it is and '
					'never cut, because two keys cut to the same one would lose a message.';
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_check_key(text) IS 'IX002 unless the key can be one';

CREATE FUNCTION @extschema@.inbox_managed_refuse(message @extschema@.inbox_message,
	ordinal integer, source text) RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	-- Not "IS NULL", which is also true of a message all of whose columns are.
	IF message IS NOT DISTINCT FROM NULL THEN
		RAISE EXCEPTION 'message % of the array is NULL', ordinal
			USING ERRCODE = 'null_value_not_allowed';
	END IF;
	PERFORM @extschema@.inbox_managed_check_key(message.key);
	RAISE EXCEPTION 'a message of source "%" in a call for source "%"', message.source, source
		USING ERRCODE = 'invalid_parameter_value',
			HINT = 'Leave its source NULL, or make one call for each source.';
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_refuse(@extschema@.inbox_message, integer, text) IS
	'says what is wrong with a message';

-- ---- claims --------------------------------------------------------------------------------

CREATE FUNCTION @extschema@.inbox_managed_check_index() RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	sound boolean;
BEGIN
	SELECT i.indisvalid AND i.indisready AND i.indimmediate AND i.indnkeyatts = 2
			AND i.indkey[0] = 1 AND i.indkey[1] = 2 AND i.indcollation[1] = '"C"'::regcollation
		INTO sound FROM pg_index i
		WHERE i.indrelid = '@extschema@.inbox_claim'::regclass AND i.indisprimary;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'inbox_claim has no primary key'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				HINT = 'ALTER TABLE @extschema@.inbox_claim ADD PRIMARY KEY (source_id, key);';
	ELSIF NOT sound THEN
		RAISE EXCEPTION 'the primary key of inbox_claim is not the one it was created with'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				HINT = 'It has to be (source_id, key) with the collation "C" and valid.';
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_check_index() IS
	'an error where two claims of one key could be let in';

-- By the index whatever the planner has seen: a plan made while the table was small is kept.
CREATE FUNCTION @extschema@.inbox_managed_find(this_id integer, these text[],
	OUT keys text[], OUT hashes bigint[])
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET enable_seqscan = off
	SET enable_bitmapscan = off
	SET enable_hashjoin = off
	SET enable_mergejoin = off
AS $$
BEGIN
	SELECT array_agg(c.key), array_agg(c.payload_hash) INTO keys, hashes
		FROM (SELECT DISTINCT u.key COLLATE "C" FROM unnest(these) u(key)) AS u(key)
		JOIN @extschema@.inbox_claim c ON c.source_id = this_id AND c.key = u.key;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_find(integer, text[]) IS
	'which of these keys have a claim, and the hashes of their payloads';

-- Where all are new, a plain INSERT does, which spares each of them a descent of the index. One that
-- is not undoes the others, at the price of dead rows: after that it is not tried for a while.
CREATE FUNCTION @extschema@.inbox_managed_claim_new(this_id integer, keys text[], hashes bigint[],
	times timestamptz[]) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	inserted bigint;
	wary integer := coalesce(nullif(current_setting('managed_inbox.wary', true), ''), '0');
BEGIN
	IF wary > 0 THEN
		PERFORM set_config('managed_inbox.wary', (wary - 1)::text, false);
		RETURN false;
	END IF;
	INSERT INTO @extschema@.inbox_claim (source_id, key, payload_hash, publish_time, claimed_at)
		SELECT this_id, u.key, u.hash, u.publish_time, clock_timestamp()
		FROM ROWS FROM (unnest(keys), unnest(hashes), unnest(times)) AS u(key, hash, publish_time)
		ORDER BY u.key COLLATE "C";
	GET DIAGNOSTICS inserted = ROW_COUNT;
	IF inserted <> cardinality(keys) THEN
		RAISE unique_violation;
	END IF;
	RETURN true;
EXCEPTION WHEN unique_violation THEN
	PERFORM set_config('managed_inbox.wary', '32', false);
	RETURN false;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_claim_new(integer, text[], bigint[], timestamptz[]) IS
	'claims all of these keys, or none of them';

-- Sorted, so that two calls cannot wait for each other; what another transaction has is read in a
-- statement of its own, whose snapshot sees that transaction's commit. Never "duplicate" because
-- nothing was inserted: where nothing is found either, it is tried again.
CREATE FUNCTION @extschema@.inbox_managed_claim(this_id integer, keys text[], hashes bigint[],
	times timestamptz[], OUT new_keys text[], OUT found_keys text[], OUT found_hashes bigint[])
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	inserted text[];
	found record;
BEGIN
	PERFORM @extschema@.inbox_managed_check_index();
	IF cardinality(keys) > 1 AND array_position(keys, NULL) IS NULL
		AND @extschema@.inbox_managed_claim_new(this_id, keys, hashes, times)
	THEN
		new_keys := keys;
		RETURN;
	END IF;
	new_keys := '{}';
	FOR round IN 1 .. 10 LOOP
		WITH claimed AS (
			INSERT INTO @extschema@.inbox_claim AS c
				(source_id, key, payload_hash, publish_time, claimed_at)
				SELECT this_id, f.key, f.hash, f.publish_time, clock_timestamp()
				FROM (SELECT DISTINCT ON (u.key COLLATE "C") u.key, u.hash, u.publish_time
					FROM ROWS FROM (unnest(keys), unnest(hashes), unnest(times))
						WITH ORDINALITY AS u(key, hash, publish_time, n)
					WHERE u.key IS NOT NULL ORDER BY u.key COLLATE "C", u.n) f
				ORDER BY f.key COLLATE "C"
				ON CONFLICT (source_id, key) DO NOTHING RETURNING c.key)
		SELECT array_agg(claimed.key) INTO inserted FROM claimed;
		new_keys := new_keys || inserted;
		IF cardinality(inserted) = cardinality(keys) THEN
			RETURN;
		END IF;
		found := @extschema@.inbox_managed_find(this_id,
			ARRAY(SELECT unnest(keys) EXCEPT SELECT unnest(inserted)));
		found_keys := found_keys || found.keys;
		found_hashes := found_hashes || found.hashes;
		SELECT array_agg(u.key ORDER BY u.n), array_agg(u.hash ORDER BY u.n),
				array_agg(u.publish_time ORDER BY u.n)
			INTO keys, hashes, times
			FROM ROWS FROM (unnest(keys), unnest(hashes), unnest(times))
				WITH ORDINALITY AS u(key, hash, publish_time, n)
			WHERE u.key IN (SELECT unnest(keys) EXCEPT SELECT unnest(inserted || found.keys));
		IF keys IS NULL THEN
			RETURN;
		END IF;
	END LOOP;
	RAISE EXCEPTION 'the key "%" was neither inserted into inbox_claim nor found there', keys[1]
		USING ERRCODE = 'object_not_in_prerequisite_state',
			DETAIL = 'A trigger or a rule on the table may keep rows out of it.',
			HINT = 'SELECT * FROM @extschema@.inbox_check();';
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_claim(integer, text[], bigint[], timestamptz[]) IS
	'claims keys; says which were new, and what it read about the others';

CREATE FUNCTION @extschema@.inbox_managed_conflicts(compares boolean, hash bigint, claimed bigint)
	RETURNS boolean
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN coalesce(compares AND (hash # claimed) & 1 = 0 AND hash <> claimed, false);
COMMENT ON FUNCTION @extschema@.inbox_managed_conflicts(boolean, bigint, bigint) IS
	'whether two payloads of one key are known to differ';

CREATE FUNCTION @extschema@.inbox_claim_key(source text, key text, payload bytea,
	publish_time timestamptz) RETURNS text
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	this_id integer;
	hash bigint := @extschema@.inbox_payload_hash(payload);
	claim record;
BEGIN
	PERFORM @extschema@.inbox_managed_writable('inbox_claim_key()');
	this_id := @extschema@.inbox_source_ensure(source);
	PERFORM @extschema@.inbox_managed_check_key(key);
	claim := @extschema@.inbox_managed_claim(this_id, ARRAY[key], ARRAY[hash], ARRAY[publish_time]);
	PERFORM @extschema@.inbox_durable(claim.found_keys IS NOT NULL);
	RETURN CASE WHEN claim.found_keys IS NULL THEN 'new'
		WHEN @extschema@.inbox_managed_conflicts((SELECT s.conflict_check
			FROM @extschema@.inbox_source s WHERE s.id = this_id), hash, claim.found_hashes[1])
		THEN 'conflict' ELSE 'duplicate' END;
END
$$;

