-- SPDX-License-Identifier: PostgreSQL
-- What is told to operators, monitors and pages.
\set SHOW_CONTEXT never
CREATE EXTENSION inbox;
CREATE FUNCTION noop(payload bytea) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION message(key text, payload bytea, ordering_key text DEFAULT NULL,
	n integer DEFAULT 0) RETURNS inbox_message LANGUAGE sql AS $$
	SELECT (key, payload, '{"type": "payment"}', ordering_key, 'm' || n,
		timestamptz '2026-01-01' + n * interval '1 second', NULL, NULL)::inbox_message $$;
CREATE FUNCTION fail(message inbox_message, state text DEFAULT '22012', in_source text DEFAULT 'a')
	RETURNS text LANGUAGE sql AS
	$$ SELECT verdict FROM inbox_fail(message, in_source, state, 'it failed', halt_after => 1000) $$;

-- Nothing is there.
SELECT * FROM inbox_status();
SELECT inbox_process('k', 'p'::bytea, 'noop', 'a');
\x
SELECT source, handler, subscription, served_at, halted_since, retrying, dead, parked, conflicts,
	expired, oldest, blocked_keys, blocked_since, blocked, purged_before, dedup_window, estimated
	FROM inbox_status();
\x

-- Failures are counted to the row.
SELECT inbox_configure('a', max_attempts => 1, order_policy => 'park');
SELECT fail(message('d' || n, 'p', 'account ' || n, n)) FROM generate_series(1, 12) n;
SELECT fail(message('d13', '{"text": "für immer"}', NULL, 13)), fail(message('d14', '\xff00', NULL, 14)),
	fail(message('d15', '\x610062', NULL, 15)), fail(message('d16', '', NULL, 16)),
	fail(message('d17', NULL, NULL, 17));
SELECT inbox_configure('a', max_attempts => 5) IS NOT NULL;
SELECT fail(message('r1', 'p', 'account r', 20));
SELECT key, verdict FROM inbox_process_batch(ARRAY[message('p1', 'p', 'account 1', 30),
	message('p2', 'p', 'account 1', 31), message('k', 'other', NULL, 32)], 'noop', 'a');
UPDATE inbox_source SET purged_before = '2025-01-01' WHERE name = 'a';
SELECT verdict FROM inbox_process_batch(ARRAY[message('e1', 'p', NULL, -100000000)], 'noop', 'a');
SELECT handler_signature FROM inbox_serve('b', 'noop', 'a subscription');
SELECT source, handler, subscription, served_at IS NOT NULL AS served, retrying, dead, parked,
	conflicts, expired, oldest = (SELECT min(failed_at) FROM inbox_failure) AS oldest, blocked_keys,
	blocked_since IS NOT NULL AS since, purged_before FROM inbox_status();
SELECT b.ordering_key, b.parked, f.key FROM inbox_status() s,
	jsonb_to_recordset(s.blocked) AS b(ordering_key text, parked int, failure bigint, since timestamptz)
	JOIN inbox_failure f ON f.id = b.failure WHERE s.source = 'a' ORDER BY b.since;
SELECT inbox_discard(id, 'a test') FROM inbox_failure WHERE key IN ('e1', 'r1');
SELECT retrying, expired, blocked_keys FROM inbox_status() WHERE source = 'a';
-- Those behind a dead letter wait only where they are parked.
SELECT inbox_configure('a', order_policy => 'continue') IS NOT NULL;
SELECT blocked_keys, blocked->0->>'ordering_key' AS first FROM inbox_status() WHERE source = 'a';

-- Claims are not counted, but estimated, by the share that ANALYZE has seen of each source.
SELECT inbox_import(ARRAY(SELECT 'i' || n FROM generate_series(1, 3000) n), 'b'),
	inbox_import(ARRAY(SELECT 'i' || n FROM generate_series(1, 1000) n), 'c');
SELECT bool_and(claim_bytes > 0) AS shared_alike FROM inbox_status();
ANALYZE inbox_claim;
SELECT source, round(claims, -2) AS about, claim_bytes > 0 AS bytes FROM inbox_status();
BEGIN;
SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) AS before
	FROM pg_stat_xact_user_tables WHERE relid = 'inbox_claim'::regclass \gset
SELECT count(*) FROM inbox_status();
SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) - :before AS scans_of_claims
	FROM pg_stat_xact_user_tables WHERE relid = 'inbox_claim'::regclass;
COMMIT;

-- Dead letters, newest first; a payload that is no text is none, and no error.
SELECT key, source, reason, attempts, sqlstate, error, age < '1 hour' AS young, payload_text, payload
	FROM inbox_dead_letters LIMIT 6;
SELECT key, status, payload_bytes FROM inbox_failures(up_to => 4);
SELECT count(*) FROM inbox_failures(in_status => 'dead', up_to => 1000);
SELECT count(*) FROM inbox_failures(of_source => 'b');
-- The page asks for them every few seconds: what was settled long ago is not read.
BEGIN;
SET LOCAL enable_seqscan = off;
SELECT pg_stat_get_xact_numscans('inbox_failure'::regclass) AS before \gset
SELECT count(*) FROM inbox_failures(in_status => 'dead', up_to => 1000);
SELECT pg_stat_get_xact_numscans('inbox_failure'::regclass) - :before AS reads_of_all;
COMMIT;

-- A monitor sees how things stand, and no payload; an operator sees both.
CREATE ROLE inbox_status_monitor ROLE CURRENT_USER;
CREATE ROLE inbox_status_operator ROLE CURRENT_USER;
CREATE ROLE inbox_status_puller ROLE CURRENT_USER;
SELECT inbox_grant('inbox_status_monitor', 'monitor'), inbox_grant('inbox_status_operator', 'operator'),
	inbox_grant('inbox_status_puller', 'puller');
SET ROLE inbox_status_monitor;
SELECT sum(dead) FROM inbox_status();
SELECT key FROM inbox_failures(up_to => 1);
SELECT payload FROM inbox_dead_letters;
SELECT payload FROM inbox_failure;
SET ROLE inbox_status_puller;
SELECT sum(dead) FROM inbox_status();
SELECT key FROM inbox_dead_letters;
SET ROLE inbox_status_operator;
SELECT sum(dead) FROM inbox_status();
SELECT payload_text FROM inbox_dead_letters WHERE key = 'd13';
RESET ROLE;
DROP OWNED BY inbox_status_monitor, inbox_status_operator, inbox_status_puller;
DROP ROLE inbox_status_monitor, inbox_status_operator, inbox_status_puller;
DROP EXTENSION inbox CASCADE;
DROP FUNCTION noop;
