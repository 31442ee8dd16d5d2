-- SPDX-License-Identifier: PostgreSQL
\echo Use "CREATE EXTENSION inbox" to load this file. \quit

-- A key is its bytes: in any other server encoding the same key may be stored as other bytes.
DO $$
BEGIN
	IF pg_catalog.current_setting('server_encoding') <> 'UTF8' THEN
		RAISE EXCEPTION 'inbox needs a database with the encoding UTF8, this one has %',
			pg_catalog.current_setting('server_encoding')
			USING ERRCODE = 'feature_not_supported',
				DETAIL = 'Keys are compared byte by byte, and messages arrive as UTF-8.',
				HINT = 'CREATE DATABASE … ENCODING ''UTF8'' TEMPLATE template0';
	END IF;
END
$$;

CREATE TYPE @extschema@.inbox_message AS (
	key text,
	payload bytea,
	attributes jsonb,
	ordering_key text,
	message_id text,
	publish_time timestamptz,
	delivery_attempt int,
	source text
);
COMMENT ON TYPE @extschema@.inbox_message IS
	'a message as it was delivered; never changed, because binary clients know its columns';
COMMENT ON COLUMN @extschema@.inbox_message.key IS
	'the producer''s idempotency key: 1 to 1024 bytes, compared byte by byte';
COMMENT ON COLUMN @extschema@.inbox_message.payload IS 'the data, byte for byte';
COMMENT ON COLUMN @extschema@.inbox_message.attributes IS 'attribute names and values';
COMMENT ON COLUMN @extschema@.inbox_message.ordering_key IS
	'messages with the same ordering key are applied in the order they were published';
COMMENT ON COLUMN @extschema@.inbox_message.message_id IS 'given by Pub/Sub at each publish';
COMMENT ON COLUMN @extschema@.inbox_message.publish_time IS 'when Pub/Sub took the message';
COMMENT ON COLUMN @extschema@.inbox_message.delivery_attempt IS
	'Pub/Sub''s own count, given where the subscription has a dead-letter policy';
COMMENT ON COLUMN @extschema@.inbox_message.source IS
	'the source of the call; handlers always see it filled in, callers may leave it NULL';

CREATE TABLE @extschema@.inbox_source (
	id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name text COLLATE pg_catalog."C" NOT NULL UNIQUE
		CHECK (pg_catalog.octet_length(name) BETWEEN 1 AND 1024),
	handler text,
	subscription text,
	created_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
	served_at timestamptz,
	configured_at timestamptz,
	configured_by text,
	applied_at timestamptz NOT NULL DEFAULT '-infinity',
	halted_since timestamptz,
	purged_before timestamptz,
	dedup_window interval CHECK (dedup_window > interval '0'),
	max_attempts integer NOT NULL DEFAULT 5 CHECK (max_attempts BETWEEN 1 AND 1000),
	conflict_check boolean NOT NULL DEFAULT true,
	order_policy text NOT NULL DEFAULT 'continue' CHECK (order_policy IN ('continue', 'park')),
	lock_group text CHECK (lock_group <> ''),
	lock_key bigint NOT NULL GENERATED ALWAYS AS (pg_catalog.hashtextextended(
		coalesce(lock_group, name) COLLATE pg_catalog."C", 4711)) STORED
);
COMMENT ON TABLE @extschema@.inbox_source IS 'the scopes in which a key is unique, and their settings';
COMMENT ON COLUMN @extschema@.inbox_source.id IS 'stands for the source in the other tables';
COMMENT ON COLUMN @extschema@.inbox_source.created_at IS 'its first use';
COMMENT ON COLUMN @extschema@.inbox_source.name IS 'as the callers name it';
COMMENT ON COLUMN @extschema@.inbox_source.handler IS
	'the signature of the handler last served: text, because no OID survives a dump';
COMMENT ON COLUMN @extschema@.inbox_source.subscription IS 'the subscription last served';
COMMENT ON COLUMN @extschema@.inbox_source.served_at IS 'when a puller last started to serve it';
COMMENT ON COLUMN @extschema@.inbox_source.configured_at IS 'when its settings were last changed';
COMMENT ON COLUMN @extschema@.inbox_source.configured_by IS 'who did that';
COMMENT ON COLUMN @extschema@.inbox_source.applied_at IS
	'the last success noted; only written while there are newer failures';
COMMENT ON COLUMN @extschema@.inbox_source.halted_since IS
	'set while message after message fails: nothing is counted against a message then';
COMMENT ON COLUMN @extschema@.inbox_source.purged_before IS
	'keys of messages published before this are forgotten: such messages are not applied any more';
COMMENT ON COLUMN @extschema@.inbox_source.dedup_window IS 'how long keys are kept; NULL is for ever';
COMMENT ON COLUMN @extschema@.inbox_source.max_attempts IS 'failures after which a message is dead';
COMMENT ON COLUMN @extschema@.inbox_source.conflict_check IS
	'whether the same key with another payload is a conflict, or a duplicate';
COMMENT ON COLUMN @extschema@.inbox_source.order_policy IS
	'what happens to messages behind a dead letter of their ordering key';
COMMENT ON COLUMN @extschema@.inbox_source.lock_group IS
	'sources whose handlers touch the same rows share a lock group; NULL is the source alone';
COMMENT ON COLUMN @extschema@.inbox_source.lock_key IS
	'the advisory lock that whatever runs a handler holds until it commits';

CREATE TABLE @extschema@.inbox_claim (
	source_id integer NOT NULL,
	key text COLLATE pg_catalog."C" NOT NULL
		CHECK (pg_catalog.octet_length(key) BETWEEN 1 AND 1024),
	payload_hash bigint,
	publish_time timestamptz,
	claimed_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
	PRIMARY KEY (source_id, key)
);
COMMENT ON TABLE @extschema@.inbox_claim IS
	'one row for each key that took effect; a message whose key is here is never applied again';
COMMENT ON COLUMN @extschema@.inbox_claim.source_id IS 'inbox_source.id';
COMMENT ON COLUMN @extschema@.inbox_claim.key IS 'the idempotency key, byte for byte';
COMMENT ON COLUMN @extschema@.inbox_claim.payload_hash IS
	'8 bytes of SHA-256; the lowest bit tells bytes (0) from jsonb (1); NULL is never compared';
COMMENT ON COLUMN @extschema@.inbox_claim.publish_time IS 'when Pub/Sub took the message';
COMMENT ON COLUMN @extschema@.inbox_claim.claimed_at IS 'when the key was claimed';

CREATE TABLE @extschema@.inbox_claim_result (
	source_id integer NOT NULL,
	key text COLLATE pg_catalog."C" NOT NULL,
	result jsonb NOT NULL,
	PRIMARY KEY (source_id, key)
);
COMMENT ON TABLE @extschema@.inbox_claim_result IS 'what handlers that return jsonb returned';
COMMENT ON COLUMN @extschema@.inbox_claim_result.source_id IS 'inbox_source.id';
COMMENT ON COLUMN @extschema@.inbox_claim_result.key IS 'the idempotency key';
COMMENT ON COLUMN @extschema@.inbox_claim_result.result IS 'what the handler returned';

CREATE TABLE @extschema@.inbox_failure (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	source_id integer NOT NULL,
	key text COLLATE pg_catalog."C" NOT NULL,
	status text COLLATE pg_catalog."C" NOT NULL CHECK (status IN
		('retrying', 'dead', 'parked', 'conflict', 'expired', 'resolved', 'discarded')),
	reason text NOT NULL,
	attempts integer NOT NULL DEFAULT 0,
	payload bytea,
	attributes jsonb,
	ordering_key text COLLATE pg_catalog."C",
	message_id text,
	publish_time timestamptz,
	delivery_attempt integer,
	payload_hash bigint,
	sqlstate text,
	error text,
	detail text,
	hint text,
	context text,
	failed_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	last_failed_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	retry_at timestamptz,
	retry_key text COLLATE pg_catalog."C",
	retry_payload bytea,
	settled_at timestamptz,
	settled_by text,
	settled_why text
);
CREATE UNIQUE INDEX inbox_failure_live ON @extschema@.inbox_failure (source_id, key)
	WHERE status IN ('retrying', 'dead', 'parked');
CREATE UNIQUE INDEX inbox_failure_kept ON @extschema@.inbox_failure
	(source_id, key, status, payload_hash) NULLS NOT DISTINCT
	WHERE status IN ('conflict', 'expired');
CREATE INDEX inbox_failure_order ON @extschema@.inbox_failure (source_id, ordering_key)
	WHERE status IN ('retrying', 'dead', 'parked') AND ordering_key IS NOT NULL;
CREATE INDEX inbox_failure_recent ON @extschema@.inbox_failure (source_id, last_failed_at)
	WHERE status IN ('retrying', 'dead');
COMMENT ON TABLE @extschema@.inbox_failure IS
	'messages that were not applied, with the reason and what became of them';
COMMENT ON INDEX @extschema@.inbox_failure_live IS 'one failure for each key that is not settled';
COMMENT ON INDEX @extschema@.inbox_failure_kept IS 'a message that comes again is kept once';
COMMENT ON INDEX @extschema@.inbox_failure_order IS 'who holds up an ordering key';
COMMENT ON INDEX @extschema@.inbox_failure_recent IS 'how many failed since the last success';
COMMENT ON COLUMN @extschema@.inbox_failure.id IS 'names the failure to inbox_retry and others';
COMMENT ON COLUMN @extschema@.inbox_failure.source_id IS 'inbox_source.id';
COMMENT ON COLUMN @extschema@.inbox_failure.key IS
	'the idempotency key; mid:<message id> for a message without a usable one';
COMMENT ON COLUMN @extschema@.inbox_failure.status IS
	'retrying, dead, parked, conflict, expired; after an operator dealt with it: resolved, discarded';
COMMENT ON COLUMN @extschema@.inbox_failure.reason IS
	'handler, no_key, unstorable, undecodable, native_dead_letter, conflict, parked, expired';
COMMENT ON COLUMN @extschema@.inbox_failure.attempts IS 'how often its handler failed';
COMMENT ON COLUMN @extschema@.inbox_failure.payload IS
	'the data as delivered; the whole envelope where the reason is unstorable or undecodable';
COMMENT ON COLUMN @extschema@.inbox_failure.attributes IS 'as delivered';
COMMENT ON COLUMN @extschema@.inbox_failure.ordering_key IS 'as delivered';
COMMENT ON COLUMN @extschema@.inbox_failure.message_id IS 'as delivered';
COMMENT ON COLUMN @extschema@.inbox_failure.publish_time IS 'as delivered';
COMMENT ON COLUMN @extschema@.inbox_failure.delivery_attempt IS 'as delivered';
COMMENT ON COLUMN @extschema@.inbox_failure.payload_hash IS 'as in inbox_claim';
COMMENT ON COLUMN @extschema@.inbox_failure.sqlstate IS 'of the last error';
COMMENT ON COLUMN @extschema@.inbox_failure.error IS 'the last error''s message';
COMMENT ON COLUMN @extschema@.inbox_failure.detail IS 'the last error''s detail';
COMMENT ON COLUMN @extschema@.inbox_failure.hint IS 'the last error''s hint';
COMMENT ON COLUMN @extschema@.inbox_failure.context IS 'the last error''s context';
COMMENT ON COLUMN @extschema@.inbox_failure.failed_at IS 'the first failure';
COMMENT ON COLUMN @extschema@.inbox_failure.last_failed_at IS 'the last failure';
COMMENT ON COLUMN @extschema@.inbox_failure.retry_at IS 'when it is due again, while retrying';
COMMENT ON COLUMN @extschema@.inbox_failure.retry_key IS 'the key an operator applied it with';
COMMENT ON COLUMN @extschema@.inbox_failure.retry_payload IS
	'the payload an operator applied instead of the original';
COMMENT ON COLUMN @extschema@.inbox_failure.settled_at IS 'when it was resolved or discarded';
COMMENT ON COLUMN @extschema@.inbox_failure.settled_by IS 'who did that';
COMMENT ON COLUMN @extschema@.inbox_failure.settled_why IS 'the reason given';

REVOKE ALL ON @extschema@.inbox_source, @extschema@.inbox_claim,
	@extschema@.inbox_claim_result, @extschema@.inbox_failure FROM PUBLIC;

-- Rows of a table that belongs to an extension are left out of a dump unless it is named here,
-- and a restored database that has forgotten its keys applies every replayed message again.
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_source', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_source_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_claim', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_claim_result', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_failure', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_failure_id_seq', '');

CREATE FUNCTION @extschema@.inbox_version() RETURNS text
	AS 'MODULE_PATHNAME', 'inbox_version'
	LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.inbox_version() IS
	'the version of the C library; compare it with pg_extension.extversion';

CREATE FUNCTION @extschema@.inbox_process(key text, payload jsonb, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_process_jsonb'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_process(key text, payload json, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_process_json'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_process(key text, payload text, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_process_text'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_process(key text, payload bytea, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_process_bytea'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_accept(key text, payload bytea DEFAULT NULL,
	source text DEFAULT 'default') RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_accept'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_process_batch(messages @extschema@.inbox_message[],
	handler regproc, source text DEFAULT 'default')
	RETURNS TABLE (ordinal integer, key text, verdict text)
	AS 'MODULE_PATHNAME', 'inbox_process_batch'
	LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 200;

CREATE FUNCTION @extschema@.inbox_handler(handler text) RETURNS text
	AS 'MODULE_PATHNAME', 'inbox_handler_signature'
	LANGUAGE C STABLE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_source_ensure(source text) RETURNS integer
	AS 'MODULE_PATHNAME', 'inbox_source_ensure'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_claim_key(source text, key text, payload bytea,
	publish_time timestamptz) RETURNS text
	AS 'MODULE_PATHNAME', 'inbox_claim_key'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_durable(proof boolean) RETURNS void
	AS 'MODULE_PATHNAME', 'inbox_durable'
	LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_retry_one(id bigint, payload bytea, key text) RETURNS boolean
	AS 'MODULE_PATHNAME', 'inbox_retry_one'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION @extschema@.inbox_check_variant()
	RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT 'versions', e.extversion = @extschema@.inbox_version(),
		format('extension %s, library %s', e.extversion, @extschema@.inbox_version())
	FROM pg_extension e WHERE e.extname = 'inbox'
	UNION ALL
	SELECT 'dump', count(*) = 6, format('%s of 6 tables and sequences are part of a dump', count(*))
	FROM pg_extension e, unnest(e.extconfig) c WHERE e.extname = 'inbox'
	UNION ALL
	SELECT 'min_synchronous_commit', true,
		format('COMMIT raises synchronous_commit to %s at least',
			current_setting('inbox.min_synchronous_commit'))
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_variant() IS
	'the part of inbox_check that only holds where inbox is an extension';

-- SPDX-License-Identifier: PostgreSQL
-- What these functions are, whoever does it: the library, or 30-functions-managed.sql.
COMMENT ON FUNCTION @extschema@.inbox_process(text, jsonb, regproc, text) IS
	'true: the handler ran in this transaction; false: a duplicate, nothing ran';

COMMENT ON FUNCTION @extschema@.inbox_process(text, json, regproc, text) IS
	'true: the handler ran in this transaction; false: a duplicate, nothing ran';

COMMENT ON FUNCTION @extschema@.inbox_process(text, text, regproc, text) IS
	'true: the handler ran in this transaction; false: a duplicate, nothing ran';

COMMENT ON FUNCTION @extschema@.inbox_process(text, bytea, regproc, text) IS
	'true: the handler ran in this transaction; false: a duplicate, nothing ran';

COMMENT ON FUNCTION @extschema@.inbox_accept(text, bytea, text) IS
	'claims the key: true: the caller does the work in this transaction; false: a duplicate';

COMMENT ON FUNCTION @extschema@.inbox_process_batch(@extschema@.inbox_message[], regproc, text) IS
	'runs the handler for each message whose key is new, all or none; a verdict for each message';

COMMENT ON FUNCTION @extschema@.inbox_handler(text) IS
	'the full signature of a handler that the caller may use; an error if there is none';

COMMENT ON FUNCTION @extschema@.inbox_source_ensure(text) IS
	'the id of a source, which is created at its first use';

COMMENT ON FUNCTION @extschema@.inbox_claim_key(text, text, bytea, timestamptz) IS
	'claims a key: new, duplicate or conflict';

COMMENT ON FUNCTION @extschema@.inbox_durable(boolean) IS
	'this transaction''s COMMIT is to be durable; with proof: also what it has read';

COMMENT ON FUNCTION @extschema@.inbox_retry_one(bigint, bytea, text) IS
	'inbox_retry without the messages that wait for this one';

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

CREATE FUNCTION @extschema@.inbox_lock(source text, exclusive boolean DEFAULT false) RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	this_id integer := @extschema@.inbox_source_ensure(source);
	lock_key bigint;
BEGIN
	SELECT s.lock_key INTO STRICT lock_key FROM @extschema@.inbox_source s WHERE s.id = this_id;
	IF exclusive THEN
		PERFORM pg_advisory_xact_lock(lock_key);
	ELSE
		PERFORM pg_advisory_xact_lock_shared(lock_key);
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_lock(text, boolean) IS
	'takes the lock of a source''s lock group until the end of the transaction';

CREATE FUNCTION @extschema@.inbox_result(key text, source text DEFAULT 'default') RETURNS jsonb
	LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
BEGIN ATOMIC
	SELECT r.result FROM @extschema@.inbox_claim_result r
		JOIN @extschema@.inbox_source s ON s.id = r.source_id
		WHERE s.name = inbox_result.source AND r.key = inbox_result.key;
END;
COMMENT ON FUNCTION @extschema@.inbox_result(text, text) IS
	'what the handler returned for this key, if it returns jsonb';

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
	this_key text := coalesce(message.key, 'mid:' || message.message_id);
	hash bigint := @extschema@.inbox_payload_hash(message.payload);
	source_row @extschema@.inbox_source;
	failure @extschema@.inbox_failure;
BEGIN
	IF this_key IS NULL OR octet_length(this_key) NOT BETWEEN 1 AND 1024 THEN
		RAISE EXCEPTION 'a failure needs a key of 1 to 1024 bytes, or a message_id instead'
			USING ERRCODE = 'IX002', DETAIL = format('The key has %s bytes, the message_id is %s.',
				coalesce(octet_length(message.key)::text, 'no'),
				coalesce(message.message_id, 'NULL'));
	END IF;
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

	verdict := CASE WHEN reason <> 'handler' THEN 'dead'
		ELSE @extschema@.inbox_fail_verdict(source_row, failure, this_key, sqlstate, halt_after)
		END;
	IF verdict <> 'dead' THEN
		DELETE FROM @extschema@.inbox_claim c WHERE c.source_id = this_id AND c.key = this_key;
		retry_after := @extschema@.inbox_fail_backoff(attempts + 1);
	END IF;
	IF verdict = 'halted' THEN
		UPDATE @extschema@.inbox_source s SET halted_since = clock_timestamp()
			WHERE s.id = this_id AND s.halted_since IS NULL;
	ELSIF verdict = 'dead' OR @extschema@.inbox_blame(sqlstate) <> 'nobody' THEN
		attempts := CASE WHEN reason = 'handler'
			THEN @extschema@.inbox_fail_attempts(failure, sqlstate)
				+ (verdict <> 'dead' AND sqlstate = 'IX006')::integer ELSE attempts END;
		PERFORM @extschema@.inbox_failure_write(this_id, this_key, message, hash,
			verdict, reason, attempts, retry_after, sqlstate, error, detail, hint, context);
	END IF;
	RETURN NEXT;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_fail(@extschema@.inbox_message, text, text, text, text, text,
	text, text, integer) IS
	'records a failed attempt, in a transaction of its own: retrying, dead, duplicate, conflict or '
	'halted';

CREATE FUNCTION @extschema@.inbox_import(keys text[], source text,
	claimed_at timestamptz[] DEFAULT NULL) RETURNS bigint
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	this_id integer := @extschema@.inbox_source_ensure(source);
	bad record;
	imported bigint;
BEGIN
	IF keys IS NULL OR array_ndims(keys) > 1 OR cardinality(claimed_at) <> cardinality(keys) THEN
		RAISE EXCEPTION 'keys must be a one-dimensional array, and claimed_at as long as that'
			USING ERRCODE = 'array_subscript_error',
				DETAIL = format('%s keys, %s times', coalesce(cardinality(keys)::text, 'NULL'),
					coalesce(cardinality(claimed_at)::text, 'no'));
	END IF;
	SELECT k.key, k.ordinal INTO bad FROM unnest(keys) WITH ORDINALITY AS k(key, ordinal)
		WHERE k.key IS NULL OR octet_length(k.key) NOT BETWEEN 1 AND 1024
		ORDER BY k.ordinal LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'key % of the array is %', bad.ordinal,
			coalesce(octet_length(bad.key) || ' bytes long', 'NULL')
			USING ERRCODE = 'IX002', HINT = 'A key is 1 to 1024 bytes. Nothing was imported.';
	END IF;
	-- Sorted as everyone sorts them, so that an import and a batch cannot deadlock.
	INSERT INTO @extschema@.inbox_claim (source_id, key, claimed_at)
		SELECT this_id, k.key, coalesce(k.claimed_at, now())
		FROM ROWS FROM (unnest(keys), unnest(claimed_at)) AS k(key, claimed_at)
		ORDER BY k.key COLLATE "C"
		ON CONFLICT (source_id, key) DO NOTHING;
	GET DIAGNOSTICS imported = ROW_COUNT;
	PERFORM @extschema@.inbox_durable(true);
	RETURN imported;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_import(text[], text, timestamptz[]) IS
	'takes over the keys of the consumer that inbox replaces; returns how many were new';

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

CREATE FUNCTION @extschema@.inbox_configure(source text, dedup_window interval DEFAULT NULL,
	max_attempts integer DEFAULT NULL, conflict_check boolean DEFAULT NULL,
	order_policy text DEFAULT NULL, lock_group text DEFAULT NULL, force boolean DEFAULT false)
	RETURNS text
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	this_id integer;
	set_up text;
BEGIN
	IF dedup_window > interval '0' AND dedup_window < interval '45 days' AND NOT force THEN
		RAISE EXCEPTION 'a dedup window of % forgets keys of messages that may still come', dedup_window
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = 'Pub/Sub keeps messages for up to 31 days, and dead letters come later.',
				HINT = 'Take 45 days or more, or say force => true.';
	ELSIF dedup_window < interval '0' OR max_attempts NOT BETWEEN 1 AND 1000
		OR order_policy NOT IN ('continue', 'park')
	THEN
		RAISE EXCEPTION 'a setting is out of its range'
			USING ERRCODE = 'invalid_parameter_value',
				DETAIL = concat_ws(', ', 'dedup_window ' || dedup_window,
					'max_attempts ' || max_attempts, 'order_policy ' || order_policy),
				HINT = 'dedup_window is 0 (for ever) or more, max_attempts 1 to 1000, order_policy '
					'''continue'' or ''park''.';
	END IF;
	this_id := @extschema@.inbox_source_ensure(source);
	UPDATE @extschema@.inbox_source s SET
		dedup_window = nullif(coalesce(inbox_configure.dedup_window, s.dedup_window), interval '0'),
		max_attempts = coalesce(inbox_configure.max_attempts, s.max_attempts),
		conflict_check = coalesce(inbox_configure.conflict_check, s.conflict_check),
		order_policy = coalesce(inbox_configure.order_policy, s.order_policy),
		lock_group = nullif(coalesce(inbox_configure.lock_group, s.lock_group), ''),
		configured_at = clock_timestamp(), configured_by = session_user
		WHERE s.id = this_id
		RETURNING format('dedup_window %s, max_attempts %s, conflict_check %s, order_policy %s, '
			'lock_group %s', coalesce(s.dedup_window::text, 'for ever'), s.max_attempts,
			CASE WHEN s.conflict_check THEN 'on' ELSE 'off' END, s.order_policy,
			coalesce(s.lock_group, 'the source alone'))
		INTO set_up;
	RETURN set_up;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_configure(text, interval, integer, boolean, text, text, boolean)
	IS 'changes the settings that are given, and says what all of them are now';

CREATE FUNCTION @extschema@.inbox_history_of_claims(this_key text, this_source text)
	RETURNS TABLE (at timestamptz, event text, detail jsonb)
	LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.claimed_at, 'applied', jsonb_strip_nulls(jsonb_build_object(
		'source', s.name, 'publish_time', c.publish_time, 'result', r.result))
	FROM @extschema@.inbox_claim c
		JOIN @extschema@.inbox_source s ON s.id = c.source_id
		LEFT JOIN @extschema@.inbox_claim_result r ON (r.source_id, r.key) = (c.source_id, c.key)
	WHERE c.key = this_key AND (this_source IS NULL OR s.name = this_source)
		AND NOT EXISTS (SELECT FROM @extschema@.inbox_failure f
			WHERE f.source_id = c.source_id AND (f.retry_key = c.key OR f.key = c.key
			AND f.reason <> 'conflict' AND f.status NOT IN ('retrying', 'expired')));
$$;
COMMENT ON FUNCTION @extschema@.inbox_history_of_claims(text, text) IS
	'the part of inbox_history about messages that were applied as they came';

CREATE FUNCTION @extschema@.inbox_history_of_failures(this_key text, this_source text)
	RETURNS TABLE (at timestamptz, event text, detail jsonb)
	LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT e.at, e.event, jsonb_strip_nulls(jsonb_build_object(
		'source', s.name, 'failure', f.id, 'message_id', f.message_id) || e.detail)
	FROM @extschema@.inbox_failure f
		JOIN @extschema@.inbox_source s ON s.id = f.source_id
		LEFT JOIN @extschema@.inbox_claim_result r
			ON (r.source_id, r.key) = (f.source_id, coalesce(f.retry_key, f.key))
			AND f.status = 'resolved'
		CROSS JOIN LATERAL (VALUES
			(f.failed_at, CASE WHEN f.reason IN ('conflict', 'parked', 'expired') THEN f.reason
				ELSE 'failed' END, jsonb_build_object('reason', f.reason,
				'publish_time', f.publish_time), true),
			(f.last_failed_at, CASE WHEN f.retry_at IS NULL THEN 'dead' ELSE 'retrying' END,
				jsonb_build_object('attempts', f.attempts, 'sqlstate', f.sqlstate,
					'error', f.error, 'retry_at', f.retry_at),
				f.reason NOT IN ('conflict', 'parked', 'expired')),
			(f.settled_at, f.status, jsonb_build_object('by', f.settled_by,
				'why', f.settled_why, 'key', f.retry_key, 'result', r.result,
				'payload_corrected', nullif(f.retry_payload IS NOT NULL, false)),
				f.settled_at IS NOT NULL)
		) AS e(at, event, detail, happened)
	WHERE this_key IN (f.key, f.retry_key) AND (this_source IS NULL OR s.name = this_source)
		AND e.happened;
$$;
COMMENT ON FUNCTION @extschema@.inbox_history_of_failures(text, text) IS
	'the part of inbox_history about messages that were not';

CREATE FUNCTION @extschema@.inbox_history(key text, source text DEFAULT NULL)
	RETURNS TABLE (at timestamptz, event text, detail jsonb)
	LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT h.at, h.event, h.detail FROM (
		SELECT * FROM @extschema@.inbox_history_of_claims(inbox_history.key, inbox_history.source)
		UNION ALL
		SELECT * FROM @extschema@.inbox_history_of_failures(inbox_history.key, inbox_history.source)
	) AS h(at, event, detail)
	ORDER BY h.at, h.event IN ('resolved', 'discarded'), h.event IN ('retrying', 'dead');
END;
COMMENT ON FUNCTION @extschema@.inbox_history(text, text) IS
	'what became of the message with this key, in the order it happened';

CREATE FUNCTION @extschema@.inbox_rights(what text) RETURNS SETOF text
	LANGUAGE plpgsql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF what IS NULL OR what NOT IN ('puller', 'operator', 'monitor') THEN
		RAISE EXCEPTION '"%" is not a set of rights', what
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'There are ''puller'', ''operator'' and ''monitor''.';
	END IF;
	RETURN QUERY SELECT r.object
		FROM (VALUES
			('{puller,operator,monitor}'::text[], 'USAGE ON SCHEMA @extschema@'),
			('{puller,operator,monitor}', 'EXECUTE ON FUNCTION @extschema@.inbox_version()'),
			('{monitor,operator}', 'SELECT ON @extschema@.inbox_source'),
			('{operator}', 'SELECT ON @extschema@.inbox_claim'),
			('{operator}', 'SELECT ON @extschema@.inbox_claim_result'),
			('{operator}', 'SELECT ON @extschema@.inbox_failure'),
			('{puller,operator,monitor}', 'SELECT ON ' || to_regclass('@extschema@.inbox_managed'))
		) AS r(who, object)
		WHERE what = ANY (r.who) AND object IS NOT NULL
		UNION ALL
		SELECT format('EXECUTE ON FUNCTION %s', f.oid::regprocedure)
		FROM (VALUES
			('{puller}'::text[], '{inbox_process,inbox_accept,inbox_process_batch,inbox_handler,
				inbox_serve,inbox_source_serve,inbox_lock,inbox_fail}'::text[]),
			('{puller,operator}', '{inbox_result,inbox_managed_writable,inbox_managed_floor,
				inbox_managed_mark,inbox_managed_open,inbox_managed_close,
				inbox_managed_results,inbox_managed_name,
				inbox_managed_refuse_handler,inbox_managed_handler,inbox_managed_handler_oid,
				inbox_managed_run,inbox_managed_process,inbox_payload_hash}'),
			('{operator}', '{inbox_managed_retry,inbox_managed_resolve}'),
			('{puller,operator,monitor}', '{inbox_check,inbox_check_server,inbox_check_tables,
				inbox_check_key,inbox_check_variant}'),
			('{operator}', '{inbox_import,inbox_process,inbox_lock,inbox_retry,inbox_retry_one,
				inbox_retry_lock,inbox_retry_check,inbox_retry_failed,inbox_retry_pick,inbox_retry_all,inbox_release,
				inbox_release_next,inbox_discard,inbox_discard_one,inbox_configure,inbox_history,
				inbox_history_of_claims,inbox_history_of_failures,inbox_blame,inbox_serve,
				inbox_source_serve,inbox_handler}')
		) AS g(who, names)
		JOIN pg_proc f ON f.proname = ANY (g.names)
			AND f.pronamespace = '@extschema@'::regnamespace
		WHERE what = ANY (g.who);
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_rights(text) IS 'what a puller, operator or monitor may do';

CREATE FUNCTION @extschema@.inbox_grant(role regrole, what text) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE (SELECT string_agg(format('GRANT %s TO %s', r.object, role), '; ')
		FROM @extschema@.inbox_rights(what) AS r(object));
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_grant(regrole, text) IS
	'lets a role be a puller, an operator or a monitor';

CREATE FUNCTION @extschema@.inbox_revoke(role regrole, what text) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE (SELECT string_agg(format('REVOKE %s FROM %s', r.object, role), '; ')
		FROM @extschema@.inbox_rights(what) AS r(object));
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_revoke(regrole, text) IS
	'takes from a role what inbox_grant gave it';

CREATE FUNCTION @extschema@.inbox_check_tables()
	RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	WITH own AS (
		SELECT c.* FROM pg_class c
		WHERE c.oid IN ('@extschema@.inbox_source'::regclass, '@extschema@.inbox_claim'::regclass,
			'@extschema@.inbox_claim_result'::regclass, '@extschema@.inbox_failure'::regclass)
	), facts AS (
		SELECT 'logged' AS name, 'unlogged, so empty after a crash; ALTER TABLE … SET LOGGED' AS trouble,
			(SELECT string_agg(o.relname, ', ') FROM own o WHERE o.relpersistence <> 'p') AS tables
		UNION ALL
		SELECT 'triggers', 'triggers may keep rows out',
			(SELECT string_agg(DISTINCT o.relname, ', ') FROM own o
				JOIN pg_trigger t ON t.tgrelid = o.oid AND NOT t.tgisinternal)
		UNION ALL
		SELECT 'rules', 'rules may keep rows out',
			(SELECT string_agg(o.relname, ', ') FROM own o WHERE o.relhasrules)
		UNION ALL
		SELECT 'row security', 'row security may hide rows',
			(SELECT string_agg(o.relname, ', ') FROM own o
				WHERE o.relrowsecurity OR o.relforcerowsecurity)
		UNION ALL
		SELECT 'inheritance', 'children or parents have rows that no index compares',
			(SELECT string_agg(DISTINCT o.relname, ', ') FROM own o
				JOIN pg_inherits i ON o.oid IN (i.inhparent, i.inhrelid))
		UNION ALL
		SELECT 'owner', 'another owner than inbox_claim',
			(SELECT string_agg(o.relname, ', ') FROM own o, own c
				WHERE c.relname = 'inbox_claim' AND o.relowner <> c.relowner)
		UNION ALL
		SELECT 'rights', 'others than the owner may write',
			(SELECT string_agg(DISTINCT o.relname, ', ') FROM own o, aclexplode(o.relacl) a
				WHERE a.grantee <> o.relowner
				AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER'))
	)
	SELECT f.name, f.tables IS NULL, coalesce(f.tables || ': ' || f.trouble, 'all tables') FROM facts f
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_tables() IS 'the part of inbox_check about the tables';

CREATE FUNCTION @extschema@.inbox_check_key() RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT 'primary key', coalesce(bool_or(i.indisprimary AND i.indisvalid AND i.indisready
			AND i.indimmediate AND i.indnkeyatts = 2 AND i.indkey::text = '1 2'
			AND i.indcollation[1] = '"C"'::regcollation), false),
		'has to be (source_id, key), valid, compared as bytes'
	FROM pg_index i WHERE i.indrelid = '@extschema@.inbox_claim'::regclass
	UNION ALL
	SELECT 'collation', bool_and(a.attcollation = '"C"'::regcollation),
		coalesce(string_agg(format('%s.%s', a.attrelid::regclass, a.attname), ', ')
			FILTER (WHERE a.attcollation <> '"C"'::regcollation) || ' is not compared as bytes',
			'names and keys are compared as bytes')
	FROM pg_attribute a
	WHERE (a.attrelid, a.attname) IN (('@extschema@.inbox_claim'::regclass, 'key'),
		('@extschema@.inbox_claim_result'::regclass, 'key'),
		('@extschema@.inbox_failure'::regclass, 'key'),
		('@extschema@.inbox_source'::regclass, 'name'))
	UNION ALL
	SELECT 'other indexes', count(*) = 0,
		coalesce(string_agg(i.indexrelid::regclass::text, ', ')
			|| ': new messages may fail because of it', 'no other unique index')
	FROM pg_index i WHERE i.indrelid = '@extschema@.inbox_claim'::regclass
		AND NOT i.indisprimary AND (i.indisunique OR i.indisexclusion)
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_key() IS
	'the part of inbox_check about what makes a key unique';

CREATE FUNCTION @extschema@.inbox_check_server() RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT 'encoding', current_setting('server_encoding') = 'UTF8',
		'the database is ' || current_setting('server_encoding')
	UNION ALL
	SELECT 'primary', NOT pg_is_in_recovery(),
		CASE WHEN pg_is_in_recovery() THEN 'this server is a standby' ELSE 'not a standby' END
	UNION ALL
	SELECT s.setting, current_setting(s.setting) = 'on',
		CASE current_setting(s.setting) WHEN 'on' THEN 'on'
			ELSE 'off: a crash may lose what COMMIT has promised' END
	FROM unnest('{fsync,full_page_writes}'::text[]) AS s(setting)
	UNION ALL
	SELECT 'standbys', true, CASE current_setting('synchronous_standby_names')
		WHEN '' THEN 'no synchronous standby: a failover may lose what COMMIT has promised'
		ELSE 'COMMIT waits for ' || current_setting('synchronous_standby_names') END
	UNION ALL
	SELECT 'public', count(*) = 0,
		coalesce(string_agg(p.oid::regprocedure::text, ', ') || ' may be called by everyone',
			'nothing is granted to everyone')
	FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
	WHERE p.pronamespace = '@extschema@'::regnamespace AND p.proname LIKE 'inbox\_%'
		AND a.grantee = 0
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_server() IS
	'the part of inbox_check about the server and the rights';

CREATE FUNCTION @extschema@.inbox_check() RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT * FROM @extschema@.inbox_check_server()
	UNION ALL SELECT * FROM @extschema@.inbox_check_tables()
	UNION ALL SELECT * FROM @extschema@.inbox_check_key()
	UNION ALL SELECT * FROM @extschema@.inbox_check_variant()
$$;
COMMENT ON FUNCTION @extschema@.inbox_check() IS
	'everything on this server that would break the promise: nothing does where all are ok';

DO $$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN SELECT p.oid FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = '@extschema@'::pg_catalog.regnamespace AND p.proname LIKE 'inbox\_%'
	LOOP
		EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
	END LOOP;
END
$$;
