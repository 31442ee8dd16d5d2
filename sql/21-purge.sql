-- Where a purge is. Not part of a dump: its positions mean nothing in another table.
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

