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
		coalesce(lock_group, name) COLLATE pg_catalog."C", 4711)) STORED,
	cluster text,
	settled_window interval CHECK (settled_window > interval '0')
);
COMMENT ON TABLE @extschema@.inbox_source IS 'the scopes in which a key is unique, and their settings';
COMMENT ON COLUMN @extschema@.inbox_source.id IS 'stands for the source in the other tables';
COMMENT ON COLUMN @extschema@.inbox_source.created_at IS 'its first use';
COMMENT ON COLUMN @extschema@.inbox_source.name IS 'as the callers name it';
COMMENT ON COLUMN @extschema@.inbox_source.handler IS
	'the signature of the handler last served: text, because no OID survives a dump';
COMMENT ON COLUMN @extschema@.inbox_source.subscription IS 'the subscription last served';
COMMENT ON COLUMN @extschema@.inbox_source.served_at IS 'when a puller last started to serve it';
COMMENT ON COLUMN @extschema@.inbox_source.cluster IS
	'where that was: system identifier and timeline';
COMMENT ON COLUMN @extschema@.inbox_source.configured_at IS 'when its settings were last changed';
COMMENT ON COLUMN @extschema@.inbox_source.configured_by IS 'who did that';
COMMENT ON COLUMN @extschema@.inbox_source.applied_at IS
	'the last success noted; only written while there are newer failures';
COMMENT ON COLUMN @extschema@.inbox_source.halted_since IS
	'set while message after message fails: nothing is counted against a message then';
COMMENT ON COLUMN @extschema@.inbox_source.purged_before IS
	'keys of messages published before this are forgotten: such messages are not applied any more';
COMMENT ON COLUMN @extschema@.inbox_source.dedup_window IS 'how long keys are kept; NULL is for ever';
COMMENT ON COLUMN @extschema@.inbox_source.settled_window IS
	'how long failures are kept that were resolved or discarded; NULL is for ever';
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
CREATE INDEX inbox_failure_settled ON @extschema@.inbox_failure (source_id, settled_at)
	WHERE status IN ('resolved', 'discarded');
CREATE INDEX inbox_failure_recent ON @extschema@.inbox_failure (source_id, last_failed_at)
	WHERE status IN ('retrying', 'dead');
COMMENT ON TABLE @extschema@.inbox_failure IS
	'messages that were not applied, with the reason and what became of them';
COMMENT ON INDEX @extschema@.inbox_failure_live IS 'one failure for each key that is not settled';
COMMENT ON INDEX @extschema@.inbox_failure_kept IS 'a message that comes again is kept once';
COMMENT ON INDEX @extschema@.inbox_failure_order IS 'who holds up an ordering key';
COMMENT ON INDEX @extschema@.inbox_failure_settled IS 'what can be removed after its time';
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

CREATE TABLE @extschema@.inbox_audit (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	who text NOT NULL DEFAULT session_user,
	source_id integer NOT NULL,
	failure_id bigint,
	act text NOT NULL,
	detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX inbox_audit_failure ON @extschema@.inbox_audit (failure_id)
	WHERE failure_id IS NOT NULL;
COMMENT ON TABLE @extschema@.inbox_audit IS
	'what was done that no other table tells: one row for each act, never changed';
COMMENT ON INDEX @extschema@.inbox_audit_failure IS 'what was tried with a failure';
COMMENT ON COLUMN @extschema@.inbox_audit.id IS 'the order of the acts';
COMMENT ON COLUMN @extschema@.inbox_audit.at IS 'when';
COMMENT ON COLUMN @extschema@.inbox_audit.who IS 'the role that was logged in';
COMMENT ON COLUMN @extschema@.inbox_audit.source_id IS 'inbox_source.id';
COMMENT ON COLUMN @extschema@.inbox_audit.failure_id IS
	'inbox_failure.id; NULL where the act was about the source';
COMMENT ON COLUMN @extschema@.inbox_audit.act IS
	'retried (and failed again), taken over, moved (another timeline), imported, configured, forced, '
	'erased';
COMMENT ON COLUMN @extschema@.inbox_audit.detail IS 'the rest of it';

REVOKE ALL ON @extschema@.inbox_source, @extschema@.inbox_claim, @extschema@.inbox_claim_result,
	@extschema@.inbox_failure, @extschema@.inbox_audit FROM PUBLIC;

