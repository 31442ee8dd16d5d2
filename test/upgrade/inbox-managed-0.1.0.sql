-- SPDX-License-Identifier: PostgreSQL
-- inbox 0.1.0 without an extension, for PostgreSQL that loads no library: Cloud SQL, AlloyDB, RDS.
--
--   psql -v ON_ERROR_STOP=1 -v schema=inbox -f inbox-managed.sql
--
-- by the role that is to own it, which needs CREATE in the database. Safe to run again, as an
-- update does. With -v from_extension=1 it takes over what the extension inbox has, and ends that.

\set inbox_quiet :QUIET
\set inbox_show_context :SHOW_CONTEXT
\set QUIET on
\set SHOW_CONTEXT never
\if :{?schema}
\else
	SELECT pg_catalog.current_schema() AS schema \gset
\endif
\if :{?from_extension}
\else
	\set from_extension 0
\endif
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT pg_catalog.set_config('managed_inbox.schema', :'schema', true) AS inbox_setting,
	pg_catalog.set_config('managed_inbox.from_extension', :'from_extension', true) AS inbox_setting,
	pg_catalog.set_config('managed_inbox.version', '', true) AS inbox_setting,
	pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true) AS inbox_setting \gset

DO $inbox_block$
DECLARE
	schema text := current_setting('managed_inbox.schema');
	extension record;
	member record;
BEGIN
	IF schema ~ '["$''\\]' THEN
		RAISE EXCEPTION 'the schema "%" cannot hold inbox', schema
			USING HINT = 'Take one without quotes, backslashes and dollar signs in its name.';
	END IF;
	IF to_regnamespace(quote_ident(schema)) IS NULL THEN
		EXECUTE format('CREATE SCHEMA %I', schema);
	END IF;

	SELECT e.oid, e.extversion, n.nspname INTO extension FROM pg_extension e
		JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'inbox';
	IF FOUND AND (current_setting('managed_inbox.from_extension') <> '1'
		OR extension.nspname <> schema)
	THEN
		RAISE EXCEPTION 'this database has the extension inbox, in the schema "%"', extension.nspname
			USING DETAIL = 'Two of them would each know half of the keys.',
				HINT = format('psql -v ON_ERROR_STOP=1 -v schema=%s -v from_extension=1 '
					'-f inbox-managed.sql takes over what it has.', extension.nspname);
	ELSIF FOUND THEN
		FOR member IN SELECT i.type, i.identity FROM pg_depend d,
			pg_identify_object(d.classid, d.objid, d.objsubid) i
			WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = extension.oid
			AND d.deptype = 'e'
		LOOP
			EXECUTE format('ALTER EXTENSION inbox DROP %s %s',
				CASE member.type WHEN 'composite type' THEN 'type' ELSE member.type END,
				member.identity);
		END LOOP;
		DROP EXTENSION inbox;
		PERFORM set_config('managed_inbox.version', extension.extversion, true);
	END IF;
END
$inbox_block$;
DO $inbox_block$
BEGIN
	IF NOT pg_catalog.to_regclass(pg_catalog.format('%I.inbox_claim', pg_catalog.current_setting('managed_inbox.schema'))) IS NOT NULL THEN
		EXECUTE pg_catalog.replace($inbox_part$
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

$inbox_part$, '@extschema@', pg_catalog.quote_ident(
			pg_catalog.current_setting('managed_inbox.schema')));
	END IF;
END
$inbox_block$;
DO $inbox_block$
BEGIN
	IF NOT pg_catalog.to_regclass(pg_catalog.format('%I.inbox_managed', pg_catalog.current_setting('managed_inbox.schema'))) IS NOT NULL THEN
		EXECUTE pg_catalog.replace($inbox_part$
CREATE TABLE @extschema@.inbox_managed (
	version text PRIMARY KEY,
	installed_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
COMMENT ON TABLE @extschema@.inbox_managed IS
	'the versions installed here, the newest of which counts: this inbox is no extension';
COMMENT ON COLUMN @extschema@.inbox_managed.version IS 'of the tables';
COMMENT ON COLUMN @extschema@.inbox_managed.installed_at IS 'when it was installed';
REVOKE ALL ON @extschema@.inbox_managed FROM PUBLIC;
$inbox_part$, '@extschema@', pg_catalog.quote_ident(
			pg_catalog.current_setting('managed_inbox.schema')));
	END IF;
END
$inbox_block$;
DO $inbox_block$
BEGIN
	IF true THEN
		EXECUTE pg_catalog.replace($inbox_part$
SELECT pg_catalog.set_config('managed_inbox.version', m.version, true)
	FROM @extschema@.inbox_managed m ORDER BY m.installed_at DESC LIMIT 1;
$inbox_part$, '@extschema@', pg_catalog.quote_ident(
			pg_catalog.current_setting('managed_inbox.schema')));
	END IF;
END
$inbox_block$;
DO $inbox_block$
BEGIN
	IF true THEN
		EXECUTE pg_catalog.replace($inbox_part$
-- What only these functions call may change with a version, also where CREATE OR REPLACE cannot.
DO $$
DECLARE
	helper regprocedure;
BEGIN
	FOR helper IN SELECT p.oid FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = '@extschema@'::pg_catalog.regnamespace
		AND p.proname LIKE 'inbox\_managed\_%'
	LOOP
		EXECUTE pg_catalog.format('DROP FUNCTION %s', helper);
	END LOOP;
END
$$;
-- What the library does in the extension, for servers that load none. What runs a handler runs as
-- its caller, with the caller's search_path, so every name and operator in it is qualified; what
-- reads or writes the tables runs as their owner. There is no EXCEPTION block on this path: it
-- would be a savepoint, and a handler's error is to undo everything.

CREATE OR REPLACE FUNCTION @extschema@.inbox_version() RETURNS text
	LANGUAGE sql STABLE STRICT PARALLEL SAFE
	RETURN '0.1.0';
COMMENT ON FUNCTION @extschema@.inbox_version() IS
	'the version of these functions; compare it with inbox_managed.version';

-- ---- promises ------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_writable(called text) RETURNS void
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
CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_floor() RETURNS void
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
CREATE OR REPLACE FUNCTION @extschema@.inbox_durable(proof boolean) RETURNS void
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_source(source text)
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_source_ensure(source text) RETURNS integer
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
CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_mark(ordinal integer, key text) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE
	RETURN pg_catalog.concat(E'/*\ninbox: {', '"ordinal":' || ordinal || ',', '"key":',
		coalesce(pg_catalog.replace(pg_catalog.replace(pg_catalog.to_json(key)::text,
			'/*', '/\u002a'), '*/', '*\/'), 'null'), E'}\n*/ ');
COMMENT ON FUNCTION @extschema@.inbox_managed_mark(integer, text) IS
	'the comment that names a message in the CONTEXT of errors';

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_check_key(key text) RETURNS void
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_refuse(message @extschema@.inbox_message,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_check_index() RETURNS void
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
CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_find(this_id integer, these text[],
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
CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_claim(this_id integer, keys text[], hashes bigint[],
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_conflicts(compares boolean, hash bigint, claimed bigint)
	RETURNS boolean
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN coalesce(compares AND (hash # claimed) & 1 = 0 AND hash <> claimed, false);
COMMENT ON FUNCTION @extschema@.inbox_managed_conflicts(boolean, bigint, bigint) IS
	'whether two payloads of one key are known to differ';

CREATE OR REPLACE FUNCTION @extschema@.inbox_claim_key(source text, key text, payload bytea,
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
CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_hold(this_id integer, parks boolean,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_refuse_conflict(source text, key text, hash bigint,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_verdicts(compares boolean, keys text[], hashes bigint[],
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
CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_close(messages @extschema@.inbox_message[], source text,
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
CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_applied(this_id integer) RETURNS void
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_keep_one(this_id integer,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_open(messages @extschema@.inbox_message[],
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_results(source text, keys text[], results jsonb[])
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_name(function oid) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT i.identity FROM pg_catalog.pg_identify_object('pg_catalog.pg_proc'::regclass, function, 0) i;
END;
COMMENT ON FUNCTION @extschema@.inbox_managed_name(oid) IS 'the full signature of a function';

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_refuse_handler(function oid, cause text) RETURNS void
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
CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_handler(handler oid, OUT call text,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_handler_oid(handler text) RETURNS oid
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_handler(handler text) RETURNS text
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
CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_run(messages @extschema@.inbox_message[], verdicts text[],
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_process(key text, payload bytea, hash bigint, handler oid,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_process(key text, payload jsonb, handler regproc,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_process(key text, payload json, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	RETURN @extschema@.inbox_process(key, pg_catalog.convert_to(payload::pg_catalog.text, 'UTF8'),
		handler, source);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.inbox_process(key text, payload text, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	RETURN @extschema@.inbox_process(key, pg_catalog.convert_to(payload, 'UTF8'), handler, source);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.inbox_process(key text, payload bytea, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	RETURN @extschema@.inbox_managed_process(key, payload, @extschema@.inbox_payload_hash(payload),
		handler, source);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.inbox_accept(key text, payload bytea DEFAULT NULL,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_process_batch(messages @extschema@.inbox_message[],
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_retry(failure bigint, new_payload bytea, new_key text,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_managed_resolve(failure bigint, new_payload bytea, new_key text)
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_retry_one(id bigint, payload bytea, key text) RETURNS boolean
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_check_variant()
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_source_serve(source text, handler text, subscription text,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_serve(source text, handler text, subscription text,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_lock(source text, exclusive boolean DEFAULT false) RETURNS void
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_result(key text, source text DEFAULT 'default') RETURNS jsonb
	LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
BEGIN ATOMIC
	SELECT r.result FROM @extschema@.inbox_claim_result r
		JOIN @extschema@.inbox_source s ON s.id = r.source_id
		WHERE s.name = inbox_result.source AND r.key = inbox_result.key;
END;
COMMENT ON FUNCTION @extschema@.inbox_result(text, text) IS
	'what the handler returned for this key, if it returns jsonb';

CREATE OR REPLACE FUNCTION @extschema@.inbox_payload_hash(payload bytea) RETURNS bigint
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN ('x' || pg_catalog.encode(pg_catalog.substring(pg_catalog.sha256(payload), 1, 8), 'hex')
		)::bit(64)::bigint & ~1::bigint;
COMMENT ON FUNCTION @extschema@.inbox_payload_hash(bytea) IS
	'the hash of a payload given as bytes, as it is kept in inbox_claim';

CREATE OR REPLACE FUNCTION @extschema@.inbox_blame(sqlstate text) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN CASE
		WHEN pg_catalog.left(sqlstate, 2) IN ('08', '25', '26', '28', '3D', '40', '53', '58')
			OR pg_catalog.left(sqlstate, 4) = '57P0' OR sqlstate = '55P03' THEN 'nobody'
		WHEN sqlstate = '57014' OR pg_catalog.left(sqlstate, 2) = 'XX' THEN 'unclear'
		ELSE 'message'
	END;
COMMENT ON FUNCTION @extschema@.inbox_blame(text) IS
	'whose fault an error is that a message raised alone: message, unclear (more patience), nobody';

CREATE OR REPLACE FUNCTION @extschema@.inbox_fail_backoff(attempts integer) RETURNS double precision
	LANGUAGE sql VOLATILE PARALLEL SAFE
	RETURN least(600, pg_catalog.power(2, least(attempts, 11) - 1)
		* (0.8 + 0.4 * pg_catalog.random()));
COMMENT ON FUNCTION @extschema@.inbox_fail_backoff(integer) IS
	'seconds until the next attempt: 1, doubling, a fifth more or less, 600 at most';

CREATE OR REPLACE FUNCTION @extschema@.inbox_failure_write(this_id integer, this_key text,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_failure_conflict(this_id integer, this_key text,
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
CREATE OR REPLACE FUNCTION @extschema@.inbox_fail_attempts(failure @extschema@.inbox_failure, sqlstate text)
	RETURNS integer
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN coalesce(failure.attempts, 0) + (sqlstate IS DISTINCT FROM 'IX006'
		AND failure.sqlstate IS DISTINCT FROM 'IX006')::integer;
COMMENT ON FUNCTION @extschema@.inbox_fail_attempts(@extschema@.inbox_failure, text) IS
	'how many attempts have been made, with the one that failed now';

CREATE OR REPLACE FUNCTION @extschema@.inbox_fail_verdict(source_row @extschema@.inbox_source,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_fail(message @extschema@.inbox_message, source text,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_import(keys text[], source text,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_retry_lock(these bigint[]) RETURNS void
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_retry_failed(this_id bigint, sqlstate text, error text,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_release_next(head bigint) RETURNS bigint
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_release(head bigint) RETURNS integer
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_retry_check(this_id bigint, corrected boolean) RETURNS void
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_retry(id bigint, payload bytea DEFAULT NULL,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_retry_pick(source text, status text, sqlstate text,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_retry_all(source text DEFAULT NULL, status text DEFAULT 'dead',
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_discard_one(this_id bigint, reason text) RETURNS boolean
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_discard(id bigint, reason text) RETURNS boolean
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_configure(source text, dedup_window interval DEFAULT NULL,
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_history_of_claims(this_key text, this_source text)
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_history_of_failures(this_key text, this_source text)
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_history(key text, source text DEFAULT NULL)
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_rights(what text) RETURNS SETOF text
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_grant(role regrole, what text) RETURNS void
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_revoke(role regrole, what text) RETURNS void
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_check_tables()
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_check_key() RETURNS TABLE (name text, ok boolean, detail text)
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_check_server() RETURNS TABLE (name text, ok boolean, detail text)
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

CREATE OR REPLACE FUNCTION @extschema@.inbox_check() RETURNS TABLE (name text, ok boolean, detail text)
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
-- Who had rights before has them to what is new.
SELECT @extschema@.inbox_grant(a.grantee::regrole, w.what)
	FROM (VALUES ('puller', 'inbox_process_batch'), ('operator', 'inbox_retry')) AS w(what, has)
	JOIN pg_catalog.pg_proc p ON p.proname = w.has
		AND p.pronamespace = '@extschema@'::pg_catalog.regnamespace,
	pg_catalog.aclexplode(p.proacl) a WHERE a.grantee NOT IN (0, p.proowner);
SELECT @extschema@.inbox_grant(a.grantee::regrole, 'monitor')
	FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a
	WHERE c.oid = '@extschema@.inbox_source'::regclass AND a.grantee <> c.relowner
	AND a.privilege_type = 'SELECT';
$inbox_part$, '@extschema@', pg_catalog.quote_ident(
			pg_catalog.current_setting('managed_inbox.schema')));
	END IF;
END
$inbox_block$;
DO $inbox_block$
DECLARE
	schema text := current_setting('managed_inbox.schema');
	left_over regprocedure;
BEGIN
	EXECUTE format('INSERT INTO %I.inbox_managed (version) VALUES (%L) ON CONFLICT DO NOTHING',
		schema, '0.1.0');
	-- What the extension had and this has not would still call its library.
	FOR left_over IN SELECT p.oid FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
		WHERE p.pronamespace = quote_ident(schema)::regnamespace AND p.proname LIKE 'inbox\_%'
		AND l.lanname = 'c'
	LOOP
		EXECUTE format('DROP FUNCTION %s', left_over);
	END LOOP;
END
$inbox_block$;
COMMIT;
\set SHOW_CONTEXT :inbox_show_context
\set QUIET :inbox_quiet
