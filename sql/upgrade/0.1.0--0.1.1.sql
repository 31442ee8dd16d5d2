-- SPDX-License-Identifier: PostgreSQL
-- Every call reads the source first and holds that until it commits: none is under way after this.
LOCK TABLE @extschema@.inbox_source IN ACCESS EXCLUSIVE MODE;

ALTER TABLE @extschema@.inbox_source
	ADD cluster text,
	ADD settled_window interval CHECK (settled_window > interval '0');
COMMENT ON COLUMN @extschema@.inbox_source.cluster IS
	'where that was: system identifier and timeline';
COMMENT ON COLUMN @extschema@.inbox_source.settled_window IS
	'how long failures are kept that were resolved or discarded; NULL is for ever';

CREATE INDEX inbox_failure_settled ON @extschema@.inbox_failure (source_id, settled_at)
	WHERE status IN ('resolved', 'discarded');
COMMENT ON INDEX @extschema@.inbox_failure_settled IS 'what can be removed after its time';

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

REVOKE ALL ON @extschema@.inbox_audit FROM PUBLIC;

CREATE TABLE @extschema@.inbox_purge_run (
	id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
	runner text NOT NULL,
	started_at timestamptz NOT NULL,
	batch_at timestamptz NOT NULL,
	finished_at timestamptz,
	waits_for text[],
	heap bigint NOT NULL,
	next_chunk bigint NOT NULL DEFAULT 0,
	chunks bigint NOT NULL,
	forgotten bigint NOT NULL DEFAULT 0,
	settled bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE @extschema@.inbox_purge_run IS 'the purge that is going on, or the last one';
COMMENT ON COLUMN @extschema@.inbox_purge_run.id IS 'there is one';
COMMENT ON COLUMN @extschema@.inbox_purge_run.runner IS 'who is at it';
COMMENT ON COLUMN @extschema@.inbox_purge_run.started_at IS 'when purged_before was set for it';
COMMENT ON COLUMN @extschema@.inbox_purge_run.batch_at IS 'when its last batch ended';
COMMENT ON COLUMN @extschema@.inbox_purge_run.finished_at IS 'NULL: it goes on';
COMMENT ON COLUMN @extschema@.inbox_purge_run.waits_for IS
	'transactions that may have read purged_before as it was; NULL: not looked at yet';
COMMENT ON COLUMN @extschema@.inbox_purge_run.heap IS 'the file of inbox_claim';
COMMENT ON COLUMN @extschema@.inbox_purge_run.next_chunk IS 'where it goes on';
COMMENT ON COLUMN @extschema@.inbox_purge_run.chunks IS 'how many there were when it started';
COMMENT ON COLUMN @extschema@.inbox_purge_run.forgotten IS 'keys forgotten so far';
COMMENT ON COLUMN @extschema@.inbox_purge_run.settled IS 'settled failures removed so far';

CREATE TABLE @extschema@.inbox_purge_chunk (
	chunk bigint PRIMARY KEY,
	due timestamptz NOT NULL
);
COMMENT ON TABLE @extschema@.inbox_purge_chunk IS
	'from when a chunk of inbox_claim can have something to forget: it need not be read before';
COMMENT ON COLUMN @extschema@.inbox_purge_chunk.chunk IS 'of 128 blocks, counted from 0';
COMMENT ON COLUMN @extschema@.inbox_purge_chunk.due IS 'when the first of its keys is old enough';

REVOKE ALL ON @extschema@.inbox_purge_run, @extschema@.inbox_purge_chunk FROM PUBLIC;

-- These take more arguments, or return more.
DROP FUNCTION @extschema@.inbox_configure(text, interval, integer, boolean, text, text, boolean);
DROP FUNCTION @extschema@.inbox_retry_all(text, text, text, timestamptz, timestamptz, text, integer);
DROP FUNCTION @extschema@.inbox_retry_pick(text, text, text, timestamptz, timestamptz, text, integer);
