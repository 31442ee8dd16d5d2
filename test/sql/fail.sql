-- SPDX-License-Identifier: PostgreSQL
-- A failed attempt is recorded in a transaction of its own.
\set SHOW_CONTEXT never
CREATE EXTENSION inbox;
CREATE TABLE ledger (key text);
CREATE FUNCTION post(k text, p text) RETURNS void LANGUAGE sql AS $$ INSERT INTO ledger VALUES (k) $$;
CREATE FUNCTION message(key text, id text DEFAULT NULL) RETURNS inbox_message LANGUAGE sql AS $$
	SELECT (key, 'payload', '{"a": "b"}', 'account 1', coalesce(id, 'id of ' || key), '2026-01-01', 7, NULL)::inbox_message $$;

-- As if the pause of each that failed were over.
CREATE FUNCTION fails(m inbox_message, source text, state text, error text, halt_after integer DEFAULT 20)
	RETURNS TABLE (verdict text, attempts integer, retry_after double precision) LANGUAGE plpgsql AS $$
BEGIN
	UPDATE inbox_failure SET retry_at = last_failed_at WHERE status = 'retrying';
	RETURN QUERY SELECT * FROM inbox_fail(m, source, state, error, 'd', 'h', 'c', halt_after => fails.halt_after);
END $$;

-- Five attempts, with a pause that doubles.
SELECT i, f.verdict, f.attempts, f.retry_after BETWEEN 0.8 * 2 ^ (i - 1) AND 1.2 * 2 ^ (i - 1) AS doubling
FROM generate_series(1, 5) i, fails(message('k1'), 's', '22012', 'error ' || i) f;
SELECT key, status, reason, attempts, payload, attributes, ordering_key, message_id, publish_time, delivery_attempt,
	sqlstate, error, detail, hint, context, last_failed_at > failed_at AS later, retry_at
FROM inbox_failure;
SELECT key, payload_hash = inbox_payload_hash('payload') AS same FROM inbox_claim;
-- Then it is claimed: a redelivery is a duplicate, here and there.
SELECT * FROM inbox_fail(message('k1'), 's', '22012', 'error');
SELECT verdict FROM inbox_process_batch(ARRAY[message('k1')], 'post', 's');
SELECT max(inbox_fail_backoff(a)) FROM generate_series(1, 2000) a;

-- A success in between removes the row, in the same transaction.
SELECT verdict, attempts FROM inbox_fail(message('k2'), 's', '22012', 'error');
BEGIN;
SELECT verdict FROM inbox_process_batch(ARRAY[message('k2')], 'post', 's');
SELECT status FROM inbox_failure WHERE key = 'k2';
ROLLBACK;
SELECT status FROM inbox_failure WHERE key = 'k2';
SELECT verdict FROM inbox_process_batch(ARRAY[message('k2')], 'post', 's');
SELECT status FROM inbox_failure WHERE key = 'k2';
-- So does finding out that it was applied.
SELECT verdict, attempts FROM inbox_fail(message('k3'), 's', '22012', 'error');
SELECT inbox_import('{k3}', 's');
SELECT verdict, attempts FROM inbox_fail(message('k3'), 's', '22012', 'error');
SELECT status FROM inbox_failure WHERE key = 'k3';
SELECT verdict, attempts FROM inbox_fail(message('k4'), 's', '22012', 'error');
SELECT inbox_import('{k4}', 's');
SELECT verdict FROM inbox_process_batch(ARRAY[message('k4')], 'post', 's');
SELECT status FROM inbox_failure WHERE key = 'k4';

-- What can never be applied is dead at once; without a key under the message's id.
SELECT r, f.* FROM unnest(ARRAY['no_key', 'unstorable', 'undecodable', 'native_dead_letter']) r,
	inbox_fail(message(CASE WHEN r <> 'no_key' THEN r END, 'id ' || r), 's', NULL, 'not a message', reason => r) f;
SELECT f.* FROM inbox_fail(message(NULL, 'id no_key'), 's', NULL, 'not a message', reason => 'no_key') f;
SELECT key, status, reason, attempts FROM inbox_failure WHERE reason <> 'handler' ORDER BY id;
SELECT key FROM inbox_claim WHERE key LIKE 'mid:%';
SELECT inbox_fail((NULL, 'p', NULL, NULL, NULL, NULL, NULL, NULL), 's', NULL, 'neither', reason => 'no_key');
SELECT inbox_fail(message(repeat('k', 1025)), 's', NULL, 'too long', reason => 'unstorable');

-- Whose fault an error is.
SELECT inbox_blame(s) AS blame, string_agg(s, ' ' ORDER BY s) FROM unnest(ARRAY['22012', '23505', 'P0001', '42703', '3F000',
	'21000', '0A000', '2F002', 'IX001', '08006', '25006', '26000', '28000', '3D000', '40001', '40P01', '53100', '53200', '55P03',
	'55000', '57014', '57P01', '57P02', '57P03', '57P05', '58030', 'XX000', 'XX001']) s GROUP BY 1 ORDER BY 1;
-- Nobody's: nothing is counted.
SELECT verdict, attempts, retry_after IS NOT NULL AS pause FROM inbox_fail(message('k5'), 's', '40P01', 'deadlock detected');
SELECT verdict, attempts FROM inbox_fail(message('k5'), 's', '22012', 'error');
SELECT verdict, attempts FROM inbox_fail(message('k5'), 's', '53100', 'disk full');
SELECT attempts, sqlstate FROM inbox_failure WHERE key = 'k5';
-- Unclear: twenty attempts and a day.
SELECT f.verdict, count(*), max(f.attempts) FROM generate_series(1, 25) i, fails(message('k6'), 's', '57014', 'timeout ' || i) f GROUP BY 1;
UPDATE inbox_failure SET failed_at = failed_at - interval '1 day' WHERE key = 'k6';
SELECT verdict, attempts FROM fails(message('k6'), 's', 'XX000', 'internal');

-- After message after message failed, and none was applied, it is not the messages.
SELECT f.verdict, count(*) FROM generate_series(1, 25) i, inbox_fail(message('h' || i), 'h', '22012', 'error') f GROUP BY 1 ORDER BY 1;
SELECT f.verdict, f.attempts FROM inbox_fail(message('h1'), 'h', '22012', 'error') f;
SELECT halted_since IS NOT NULL AS halted FROM inbox_source WHERE name = 'h';
SELECT halted_since IS NOT NULL AS halted FROM inbox_serve('h', 'post', 'a');
SELECT count(*), max(attempts) FROM inbox_failure f JOIN inbox_source s ON s.id = f.source_id WHERE s.name = 'h';
-- The first success ends that. A duplicate is none.
SELECT inbox_import('{h-old}', 'h');
SELECT verdict FROM inbox_process_batch(ARRAY[message('h-old')], 'post', 'h');
SELECT halted_since IS NOT NULL AS halted FROM inbox_source WHERE name = 'h';
SELECT inbox_process('h30', 'x', 'post', 'h');
SELECT halted_since IS NOT NULL AS halted FROM inbox_source WHERE name = 'h';
SELECT verdict, attempts FROM fails(message('h1'), 'h', '22012', 'error');
-- One message alone does not halt a source, however often it fails.
SELECT f.verdict, count(*) FROM generate_series(1, 6) i, fails(message('one'), 'o', '22012', 'error ' || i, halt_after => 2) f GROUP BY 1 ORDER BY 1;
SELECT verdict FROM inbox_fail(message('two'), 'o', '22012', 'error', halt_after => 2);

-- A message that comes with the key of another is no duplicate of it: it is kept.
SELECT inbox_process('taken', 'one payload', 'post', 's');
SELECT verdict FROM inbox_fail(('taken', 'one payload', NULL, NULL, 'm1', NULL, NULL, NULL), 's', NULL, 'came late', reason => 'native_dead_letter');
SELECT verdict FROM inbox_fail(('taken', 'another payload', NULL, NULL, 'm2', NULL, NULL, NULL), 's', NULL, 'came late', reason => 'native_dead_letter');
SELECT verdict FROM inbox_fail(('taken', 'another payload', NULL, NULL, 'm2', NULL, NULL, NULL), 's', '22012', 'division by zero');
SELECT key, status, message_id, convert_from(payload, 'UTF8') FROM inbox_failure WHERE key = 'taken';
SELECT inbox_configure('s', conflict_check => false);
SELECT verdict FROM inbox_fail(('taken', 'a third', NULL, NULL, 'm3', NULL, NULL, NULL), 's', '22012', 'division by zero');

-- What fails before the pause is over counts as nothing more, however often; whoever has the message is told how long to wait.
CREATE FUNCTION make_pauses_long() RETURNS void LANGUAGE sql AS
	$$ UPDATE inbox_failure SET retry_at = last_failed_at + interval '1 hour' WHERE status = 'retrying' $$;
SELECT verdict, attempts FROM inbox_fail(message('p1'), 'w', '22012', 'first');
SELECT make_pauses_long();
SELECT f.verdict, f.attempts, count(*), bool_and(f.retry_after BETWEEN 3000 AND 3600) AS rest_of_it
FROM generate_series(1, 10) i, inbox_fail(message('p1'), 'w', CASE i % 3 WHEN 0 THEN '57014' WHEN 1 THEN '22012' ELSE '40P01' END, 'again') f GROUP BY 1, 2;
SELECT attempts, error FROM inbox_failure WHERE key = 'p1';
SELECT verdict, attempts FROM fails(message('p1'), 'w', '22012', 'second');
SELECT make_pauses_long();
SELECT verdict, attempts, retry_after BETWEEN 3000 AND 3600 AS rest_of_it FROM inbox_fail(message('p1'), 'w', '22012', 'again');
-- Nor is a message that had its last attempt dead before its pause is over.
SELECT inbox_configure('w', max_attempts => 2);
SELECT verdict, attempts FROM inbox_fail(message('p1'), 'w', '22012', 'again');
SELECT verdict, attempts FROM fails(message('p1'), 'w', '22012', 'third');
SELECT inbox_configure('w', max_attempts => 5);
-- What can never be applied does not wait.
SELECT verdict, attempts FROM inbox_fail(message('p2'), 'w', '22012', 'first');
SELECT verdict, attempts FROM inbox_fail(message('p2'), 'w', NULL, 'not a message', reason => 'unstorable');
-- A clock that was set back does not stop the count.
SELECT verdict, attempts FROM inbox_fail(message('p3'), 'w', '22012', 'first');
UPDATE inbox_failure SET last_failed_at = last_failed_at + interval '1 hour', retry_at = retry_at + interval '1 hour' WHERE key = 'p3';
SELECT verdict, attempts FROM inbox_fail(message('p3'), 'w', '22012', 'second');
-- A note of a run that may end its backend is the attempt that then fails, at once or not at all.
SELECT f.verdict, f.attempts FROM unnest('{IX006,IX006,22012,22012}'::text[]) state, inbox_fail(message('p4'), 'w', state, state) f;
SELECT attempts, sqlstate FROM inbox_failure WHERE key = 'p4';
-- In the pause after a failure it is none of its own; but that it is noted again says that the run before was lost.
SELECT f.verdict, f.attempts FROM unnest('{IX006,22012,22012,IX006,IX006}'::text[]) state, inbox_fail(message('p4'), 'w', state, state) f;

-- One error of every class, raised by a handler: what is counted against its message.
CREATE FUNCTION raises(k text, p text) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = k; END $$;
CREATE FUNCTION outcome(state text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	raised text := 'nothing';
	named boolean;
	failed record;
BEGIN
	BEGIN
		PERFORM inbox_process_batch(ARRAY[(state, 'p', NULL, NULL, NULL, NULL, NULL, NULL)]::inbox_message[], 'raises', 'e');
	EXCEPTION WHEN OTHERS OR query_canceled OR assert_failure THEN
		GET STACKED DIAGNOSTICS raised = RETURNED_SQLSTATE;
	END;
	SELECT * INTO failed FROM inbox_fail((state, 'p', NULL, NULL, NULL, NULL, NULL, NULL), 'e', raised, 'as asked', halt_after => 1000);
	RETURN CASE WHEN raised <> state THEN 'changed to ' || raised
		WHEN failed.attempts = 0 THEN 'not counted' ELSE 'counted' END;
END $$;
SELECT outcome(state), string_agg(state, ' ' ORDER BY state) FROM unnest(ARRAY['01000', '02000', '03000', '08006', '09000', '0A000', '0B000',
	'0F000', '0L000', '0P000', '0Z000', '20000', '21000', '22012', '23505', '24000', '25006', '26000', '27000', '28000', '2B000', '2D000',
	'2F000', '34000', '38000', '39000', '3B000', '3D000', '3F000', '40001', '40P01', '42P01', '44000', '53100', '54000', '55000',
	'55P03', '57000', '57014', '57P01', '58030', '72000', 'F0000', 'HV000', 'P0001', 'XX000', 'IX001', 'ZZ999']) state
GROUP BY 1 ORDER BY 1;

DROP EXTENSION inbox CASCADE;
DROP FUNCTION post, raises, outcome, make_pauses_long;
DROP TABLE ledger;
