-- SPDX-License-Identifier: PostgreSQL
-- What the library does in the extension, for servers that load none. What runs a handler runs as
-- its caller, with the caller's search_path, so every name and operator in it is qualified; what
-- reads or writes the tables runs as their owner. There is no EXCEPTION block on this path: it
-- would be a savepoint, and a handler's error is to undo everything.

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
	LOOP
		SELECT s.id INTO this_id FROM @extschema@.inbox_source s WHERE s.name = source;
		EXIT WHEN FOUND;
		INSERT INTO @extschema@.inbox_source (name) VALUES (source) ON CONFLICT (name) DO NOTHING;
	END LOOP;
	RETURN this_id;
END
$$;

-- ---- messages ------------------------------------------------------------------------------

-- The text of a statement is part of the CONTEXT of its errors, and a line of this form is how a
-- caller finds out which message failed. JSON keeps a key in its line, and here in its comment too.
CREATE FUNCTION @extschema@.inbox_managed_mark(ordinal integer, key text) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE
	RETURN pg_catalog.concat(E'/*\ninbox: {', '"ordinal":' || ordinal || ',', '"key":',
		coalesce(pg_catalog.replace(pg_catalog.replace(pg_catalog.to_json(key)::text,
			'/*', '/\u002a'), '*/', '*\/'), 'null'), E'}\n*/ ');
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
		found := @extschema@.inbox_managed_find(this_id, ARRAY(SELECT u.key FROM unnest(keys) AS u(key)
			WHERE NOT EXISTS (SELECT FROM unnest(inserted) AS i(key) WHERE i.key = u.key)));
		found_keys := found_keys || found.keys;
		found_hashes := found_hashes || found.hashes;
		SELECT array_agg(u.key ORDER BY u.n), array_agg(u.hash ORDER BY u.n),
				array_agg(u.publish_time ORDER BY u.n)
			INTO keys, hashes, times
			FROM ROWS FROM (unnest(keys), unnest(hashes), unnest(times))
				WITH ORDINALITY AS u(key, hash, publish_time, n)
			WHERE u.key IS NOT NULL AND NOT EXISTS (
				SELECT FROM unnest(inserted || found.keys) AS d(key) WHERE d.key = u.key);
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

-- ---- order and expiry ----------------------------------------------------------------------

-- Neither too old nor held back is what was applied before. What comes before a message in its own
-- call does not hold it up: it is applied first, or none is. Where a time is missing, it holds.
CREATE FUNCTION @extschema@.inbox_managed_hold(this_id integer, parks boolean,
	purged_before timestamptz, keys text[], ordering_keys text[], times timestamptz[])
	RETURNS text[]
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	claimed text[];
BEGIN
	SELECT f.keys INTO claimed FROM @extschema@.inbox_managed_find(this_id, keys) f;
	RETURN ARRAY(
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
				AND NOT EXISTS (SELECT FROM message e WHERE e.key COLLATE "C" = f.key AND e.n < m.n)
			GROUP BY m.n
		)
		SELECT CASE WHEN EXISTS (SELECT FROM unnest(claimed) c(key) WHERE c.key COLLATE "C" = m.key)
				THEN NULL
			WHEN o.publish_time < inbox_managed_hold.purged_before THEN 'expired'
			WHEN h.waits THEN 'later'
			WHEN NOT h.waits THEN 'parks' END
		FROM message m JOIN message o ON o.n = m.first LEFT JOIN held h ON h.n = m.first
		ORDER BY m.n);
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_hold(integer, boolean, timestamptz, text[], text[],
	timestamptz[]) IS 'for each message: expired, later, parks (instead of being applied), or NULL';

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
			AND m.verdict IN ('applied', 'duplicate');
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

CREATE FUNCTION @extschema@.inbox_managed_open(messages @extschema@.inbox_message[],
	given_hash bigint, source text, single boolean, runs boolean) RETURNS text[]
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
	src record;
	claim record;
	keys text[];
	hashes bigint[];
	ordering_keys text[];
	times timestamptz[];
	held text[];
	bad integer;
	verdicts text[];
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
				message_id, publish_time, delivery_attempt, source, n)
			ORDER BY u.n) AS m;
	IF bad IS NOT NULL THEN
		IF single THEN
			PERFORM @extschema@.inbox_managed_check_key(keys[1]);
		END IF;
		EXECUTE @extschema@.inbox_managed_mark(bad, CASE WHEN octet_length(keys[bad])
				BETWEEN 1 AND 1024 THEN keys[bad] END)
			|| 'SELECT @extschema@.inbox_managed_refuse($1, $2, $3)'
			USING messages[bad], bad, source;
	ELSIF keys IS NULL THEN
		RETURN '{}';
	END IF;
	IF runs AND NOT pg_try_advisory_xact_lock_shared(src.lock_key) THEN
		PERFORM pg_advisory_xact_lock_shared(src.lock_key);
		SELECT * INTO STRICT src FROM @extschema@.inbox_managed_source(source);
	END IF;

	IF src.holding OR src.purged_before IS NOT NULL THEN
		held := @extschema@.inbox_managed_hold(src.id, src.parks, src.purged_before, keys,
			ordering_keys, times);
	END IF;
	claim := @extschema@.inbox_managed_claim(src.id, CASE WHEN held IS NULL THEN keys
		ELSE ARRAY(SELECT CASE WHEN u.held IS NULL OR u.held = 'parks' THEN u.key END
			FROM ROWS FROM (unnest(keys), unnest(held)) WITH ORDINALITY AS u(key, held, n)
			ORDER BY u.n) END, hashes, times);
	IF held IS NULL AND cardinality(claim.new_keys) = cardinality(keys) THEN
		verdicts := array_fill('applied'::text, ARRAY[cardinality(keys)]);
	ELSE
		verdicts := @extschema@.inbox_managed_verdicts(src.compares, keys, hashes, held,
			claim.found_keys, claim.found_hashes);
		IF single AND verdicts[1] = 'conflict' THEN
			PERFORM @extschema@.inbox_managed_refuse_conflict(source, keys[1], given_hash, claim.found_hashes[1]);
		END IF;
	END IF;
	IF cardinality(claim.new_keys) = 0 AND claim.found_keys IS NOT NULL THEN
		PERFORM @extschema@.inbox_durable(true);
	END IF;
	RETURN verdicts;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_open(@extschema@.inbox_message[], bigint, text,
	boolean, boolean) IS
	'the first part of a call: claims the keys of its messages; a verdict for each of them';

CREATE FUNCTION @extschema@.inbox_managed_results(source text, keys text[], results jsonb[])
	RETURNS void
	LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
BEGIN ATOMIC
	INSERT INTO @extschema@.inbox_claim_result (source_id, key, result)
		SELECT s.id, r.key, r.result
		FROM @extschema@.inbox_source s,
			ROWS FROM (pg_catalog.unnest(keys), pg_catalog.unnest(results)) AS r(key, result)
		WHERE s.name = inbox_managed_results.source;
END;
COMMENT ON FUNCTION @extschema@.inbox_managed_results(text, text[], jsonb[]) IS
	'keeps what handlers returned';

-- ---- handlers ------------------------------------------------------------------------------

CREATE FUNCTION @extschema@.inbox_managed_name(function oid) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT i.identity FROM pg_catalog.pg_identify_object('pg_catalog.pg_proc'::regclass, function, 0) i;
END;
COMMENT ON FUNCTION @extschema@.inbox_managed_name(oid) IS 'the full signature of a function';

CREATE FUNCTION @extschema@.inbox_managed_refuse_handler(function oid, cause text) RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF function IS NULL THEN
		RAISE EXCEPTION 'the handler is NULL' USING ERRCODE = 'IX003',
			HINT = 'Use inbox_accept to claim a key without a handler.';
	ELSIF cause IS NULL THEN
		RAISE EXCEPTION 'the handler, a function with OID %, does not exist', function
			USING ERRCODE = 'undefined_function',
				HINT = 'Name the handler by its name or signature.';
	ELSIF cause = 'strict' THEN
		RAISE EXCEPTION '% is strict and would not run for this message',
				@extschema@.inbox_managed_name(function)
			USING ERRCODE = 'IX003',
				DETAIL = 'The message has no payload, and a strict function is not called with a NULL '
					'argument: the message would be lost.',
				HINT = format('ALTER FUNCTION %s CALLED ON NULL INPUT;',
					@extschema@.inbox_managed_name(function));
	ELSIF cause = 'right' THEN
		RAISE EXCEPTION 'permission denied for handler %', @extschema@.inbox_managed_name(function)
			USING ERRCODE = 'insufficient_privilege',
				HINT = format('GRANT EXECUTE ON FUNCTION %s TO %I;',
					@extschema@.inbox_managed_name(function), current_user);
	END IF;
	RAISE EXCEPTION '% cannot be a handler', @extschema@.inbox_managed_name(function)
		USING ERRCODE = 'IX003', DETAIL = cause,
			HINT = 'A handler is a plain function that takes (payload), (key text, payload) or '
				'(inbox_message), where payload is jsonb, json, text or bytea.';
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_refuse_handler(oid, text) IS
	'says why a function cannot be a handler';

-- The handler is called by its name and with arguments of exactly its types. Its result is asked
-- for only where it is kept: what is not jsonb is thrown away.
CREATE FUNCTION @extschema@.inbox_managed_handler(handler oid, OUT call text,
	OUT takes_message boolean, OUT refuses_null boolean, OUT returns_jsonb boolean)
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	own oid := '@extschema@.inbox_message'::regtype;
	payloads oid[] := '{jsonb,json,text,bytea}'::regtype[];
	proc record;
	form integer;
	cause text;
BEGIN
	SELECT p.prokind, p.proretset, p.pronargs, p.proargtypes, p.prorettype, p.proisstrict,
			p.proname, n.nspname, has_function_privilege(p.oid, 'EXECUTE') AS allowed
		INTO proc FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
		WHERE p.oid = handler;
	IF NOT FOUND THEN
		PERFORM @extschema@.inbox_managed_refuse_handler(handler, NULL);
	END IF;
	form := CASE
		WHEN proc.pronargs = 1 AND proc.proargtypes[0] = own THEN 3
		WHEN proc.pronargs = 1 AND proc.proargtypes[0] = ANY (payloads) THEN 1
		WHEN proc.pronargs = 2 AND proc.proargtypes[0] = 'text'::regtype
			AND proc.proargtypes[1] = ANY (payloads) THEN 2 END;
	cause := CASE
		WHEN proc.prokind = 'p' THEN 'It is a procedure, which could commit half of its work.'
		WHEN proc.prokind <> 'f' THEN 'It is an aggregate or a window function.'
		WHEN proc.proretset THEN 'It returns a set.'
		WHEN proc.nspname ~ '^pg_(toast_)?temp_'
			THEN 'It lives in a temporary schema, where anyone may put a function.'
		WHEN form IS NULL THEN 'Its arguments are other ones.'
		WHEN NOT proc.allowed THEN 'right' END;
	IF cause IS NOT NULL THEN
		PERFORM @extschema@.inbox_managed_refuse_handler(handler, cause);
	END IF;
	call := format(CASE form WHEN 1 THEN 'SELECT %I.%I(%s)' WHEN 2 THEN 'SELECT %I.%I($1, %s)'
			ELSE 'SELECT %I.%I($3)' END, proc.nspname, proc.proname,
		CASE proc.proargtypes[proc.pronargs - 1]::regtype WHEN 'bytea'::regtype THEN '$2'
			WHEN 'text'::regtype THEN 'pg_catalog.convert_from($2, ''UTF8'')'
			ELSE format('pg_catalog.convert_from($2, ''UTF8'')::pg_catalog.%s',
				proc.proargtypes[proc.pronargs - 1]::regtype) END);
	takes_message := form = 3;
	refuses_null := proc.proisstrict AND NOT takes_message;
	returns_jsonb := proc.prorettype = 'jsonb'::regtype;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_handler(oid) IS
	'how to call a handler; an error if it cannot be one, or the caller may not call it';

CREATE FUNCTION @extschema@.inbox_managed_handler_oid(handler text) RETURNS oid
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE
AS $$
BEGIN
	IF pg_catalog.strpos(handler, '(') OPERATOR(pg_catalog.>) 0 THEN
		RETURN handler::pg_catalog.regprocedure;
	END IF;
	RETURN handler::pg_catalog.regproc;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_handler_oid(text) IS
	'finds a handler by its name or signature';

CREATE FUNCTION @extschema@.inbox_handler(handler text) RETURNS text
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE
AS $$
DECLARE
	function oid := @extschema@.inbox_managed_handler_oid(handler);
BEGIN
	IF function IS NULL THEN
		PERFORM @extschema@.inbox_managed_refuse_handler(NULL, NULL);
	END IF;
	PERFORM @extschema@.inbox_managed_handler(function);
	RETURN @extschema@.inbox_managed_name(function);
END
$$;

-- Each message is a statement of its own, because the text of a statement is what names it in
-- errors.
CREATE FUNCTION @extschema@.inbox_managed_run(messages @extschema@.inbox_message[], verdicts text[],
	handler oid, source text, numbered boolean) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	how record := @extschema@.inbox_managed_handler(handler);
	this record;
	call text;
	result jsonb;
	keys text[];
	results jsonb[];
BEGIN
	FOR this IN
		SELECT u.key, u.payload, CASE WHEN how.takes_message THEN ROW(u.key, u.payload,
				u.attributes, u.ordering_key, u.message_id, u.publish_time, u.delivery_attempt,
				inbox_managed_run.source)::@extschema@.inbox_message END AS message,
			CASE WHEN numbered THEN u.n::pg_catalog.int4 END AS ordinal
		FROM ROWS FROM (pg_catalog.unnest(messages), pg_catalog.unnest(verdicts))
			WITH ORDINALITY AS u(key, payload, attributes, ordering_key, message_id, publish_time,
				delivery_attempt, source, verdict, n)
		WHERE u.verdict OPERATOR(pg_catalog.=) 'applied' ORDER BY u.n
	LOOP
		call := @extschema@.inbox_managed_mark(this.ordinal, this.key)
			OPERATOR(pg_catalog.||) how.call;
		IF how.refuses_null AND this.payload IS NULL THEN
			EXECUTE @extschema@.inbox_managed_mark(this.ordinal, this.key) OPERATOR(pg_catalog.||)
				'SELECT @extschema@.inbox_managed_refuse_handler($1, ''strict'')' USING handler;
		ELSIF how.returns_jsonb THEN
			EXECUTE call INTO result USING this.key, this.payload, this.message;
			IF result IS NOT NULL THEN
				keys := pg_catalog.array_append(keys, this.key);
				results := pg_catalog.array_append(results, result);
			END IF;
		ELSE
			EXECUTE call USING this.key, this.payload, this.message;
		END IF;
	END LOOP;
	IF keys IS NOT NULL THEN
		PERFORM @extschema@.inbox_managed_results(source, keys, results);
	END IF;
	PERFORM @extschema@.inbox_managed_floor();
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_run(@extschema@.inbox_message[], text[], oid, text,
	boolean) IS 'the second part of a call: runs the handler, as the caller, for what is new';

-- ---- what is called ------------------------------------------------------------------------

CREATE FUNCTION @extschema@.inbox_managed_process(key text, payload bytea, hash bigint, handler oid,
	source text) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	messages @extschema@.inbox_message[] := ARRAY[
		ROW(key, payload, NULL, NULL, NULL, NULL, NULL, NULL)::@extschema@.inbox_message];
	verdicts text[];
BEGIN
	PERFORM @extschema@.inbox_managed_writable('inbox_process()');
	IF handler IS NULL THEN
		PERFORM @extschema@.inbox_managed_refuse_handler(NULL, NULL);
	END IF;
	PERFORM @extschema@.inbox_managed_handler(handler);
	verdicts := @extschema@.inbox_managed_open(messages, hash, source, true, true);
	PERFORM @extschema@.inbox_managed_run(messages, verdicts, handler, source, false);
	PERFORM @extschema@.inbox_managed_close(messages, source, verdicts);
	RETURN verdicts[1] OPERATOR(pg_catalog.=) 'applied';
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_process(text, bytea, bigint, oid, text) IS
	'inbox_process, whatever the type of the payload';

CREATE FUNCTION @extschema@.inbox_process(key text, payload jsonb, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	bytes bytea := pg_catalog.convert_to(payload::pg_catalog.text, 'UTF8');
BEGIN
	RETURN @extschema@.inbox_managed_process(key, bytes,
		@extschema@.inbox_payload_hash(bytes) OPERATOR(pg_catalog.|) 1::bigint, handler, source);
END
$$;

CREATE FUNCTION @extschema@.inbox_process(key text, payload json, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	RETURN @extschema@.inbox_process(key, pg_catalog.convert_to(payload::pg_catalog.text, 'UTF8'),
		handler, source);
END
$$;

CREATE FUNCTION @extschema@.inbox_process(key text, payload text, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	RETURN @extschema@.inbox_process(key, pg_catalog.convert_to(payload, 'UTF8'), handler, source);
END
$$;

CREATE FUNCTION @extschema@.inbox_process(key text, payload bytea, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	RETURN @extschema@.inbox_managed_process(key, payload, @extschema@.inbox_payload_hash(payload),
		handler, source);
END
$$;

CREATE FUNCTION @extschema@.inbox_accept(key text, payload bytea DEFAULT NULL,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	messages @extschema@.inbox_message[] := ARRAY[
		ROW(key, payload, NULL, NULL, NULL, NULL, NULL, NULL)::@extschema@.inbox_message];
	verdicts text[];
BEGIN
	PERFORM @extschema@.inbox_managed_writable('inbox_accept()');
	verdicts := @extschema@.inbox_managed_open(messages, @extschema@.inbox_payload_hash(payload),
		source, true, false);
	PERFORM @extschema@.inbox_managed_close(messages, source, verdicts);
	PERFORM @extschema@.inbox_managed_floor();
	RETURN verdicts[1] OPERATOR(pg_catalog.=) 'applied';
END
$$;

CREATE FUNCTION @extschema@.inbox_process_batch(messages @extschema@.inbox_message[],
	handler regproc, source text DEFAULT 'default')
	RETURNS TABLE (ordinal integer, key text, verdict text)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 200
AS $$
DECLARE
	verdicts text[];
BEGIN
	PERFORM @extschema@.inbox_managed_writable('inbox_process_batch()');
	IF messages IS NULL THEN
		RAISE EXCEPTION 'messages is NULL' USING ERRCODE = 'null_value_not_allowed';
	ELSIF pg_catalog.array_ndims(messages) OPERATOR(pg_catalog.>) 1 THEN
		RAISE EXCEPTION 'messages must be a one-dimensional array, this one has %',
			pg_catalog.array_ndims(messages) USING ERRCODE = 'array_subscript_error';
	ELSIF handler IS NULL THEN
		PERFORM @extschema@.inbox_managed_refuse_handler(NULL, NULL);
	END IF;
	PERFORM @extschema@.inbox_managed_handler(handler);
	verdicts := @extschema@.inbox_managed_open(messages, NULL, source, false, true);
	PERFORM @extschema@.inbox_managed_run(messages, verdicts, handler, source, true);
	PERFORM @extschema@.inbox_managed_close(messages, source, verdicts);
	RETURN QUERY SELECT v.n::pg_catalog.int4, m.key, v.verdict
		FROM ROWS FROM (pg_catalog.unnest(messages), pg_catalog.unnest(verdicts)) WITH ORDINALITY
			AS m(key, payload, attributes, ordering_key, message_id, publish_time,
				delivery_attempt, source, verdict, n),
			LATERAL (SELECT m.verdict, m.n) AS v(verdict, n);
END
$$;

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
	SELECT d.*, s.name, s.handler INTO f FROM @extschema@.inbox_failure d
		JOIN @extschema@.inbox_source s ON s.id = d.source_id
		WHERE d.id = failure FOR UPDATE OF d;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'there is no failure with the id %', failure USING
			ERRCODE = 'no_data_found', HINT = 'SELECT * FROM inbox_failure ORDER BY id;';
	ELSIF f.status NOT IN ('dead', 'parked', 'conflict') THEN
		RETURN;
	END IF;
	SELECT e.id INTO waits_for FROM @extschema@.inbox_failure e
		WHERE e.source_id = f.source_id AND e.ordering_key = f.ordering_key
		AND e.status IN ('dead', 'parked') AND f.status = 'parked'
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
	ELSIF message.key <> f.key THEN
		-- The old key was claimed when the message died; a new one has to be free.
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
		WHERE f.id = failure AND f.status IN ('dead', 'parked', 'conflict');
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
	PERFORM @extschema@.inbox_managed_run(ARRAY[failure.message], '{applied}',
		@extschema@.inbox_managed_handler_oid(failure.handler), (failure.message).source, false);
	PERFORM @extschema@.inbox_managed_resolve(id, payload, key);
	RETURN true;
END
$$;

-- ---- what only the library can do ----------------------------------------------------------

CREATE FUNCTION @extschema@.inbox_check_variant()
	RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT 'versions', m.version = @extschema@.inbox_version(),
		format('managed, tables %s, functions %s', m.version, @extschema@.inbox_version())
	FROM (SELECT v.version FROM @extschema@.inbox_managed v ORDER BY v.installed_at DESC LIMIT 1) m
	UNION ALL
	SELECT 'dump', true, 'the tables are part of every dump'
	UNION ALL
	SELECT 'min_synchronous_commit', current_setting('synchronous_commit') IN ('on', 'remote_apply'),
		CASE WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply')
		THEN 'each call raises synchronous_commit to on; what lowers it later in the transaction counts'
		ELSE format('synchronous_commit is %s by default: what lowers it after a call in the same '
			'transaction is not raised again', current_setting('synchronous_commit')) END
	UNION ALL
	SELECT 'managed: settings', true, 'what a handler SETs, SET ROLE included, is not undone after '
		'it: use SET clauses of the function'
	UNION ALL
	SELECT 'managed: prepared', true, CASE current_setting('max_prepared_transactions') WHEN '0'
		THEN 'no transaction can be prepared'
		ELSE 'PREPARE TRANSACTION is not refused: prepare none that used inbox, it would hold its keys' END
	UNION ALL
	SELECT 'managed: claims', true, 'a role that may call inbox_process can claim a key without '
		'running a handler'
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_variant() IS
	'the part of inbox_check that only holds where inbox is not an extension';
