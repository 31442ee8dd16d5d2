-- SPDX-License-Identifier: PostgreSQL
-- What an operator does with messages that were not applied.
\set SHOW_CONTEXT never
CREATE EXTENSION inbox;
CREATE TABLE ledger (n serial, key text, payload text, who text DEFAULT current_user);
CREATE FUNCTION post(k text, p text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
	IF p = 'bad' THEN RAISE EXCEPTION 'bad payload' USING ERRCODE = '22023', DETAIL = 'd', HINT = 'h'; END IF;
	IF p = 'busy' THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END IF;
	INSERT INTO ledger (key, payload) VALUES (k, p);
	RETURN jsonb_build_object('posted', p);
END $$;
CREATE FUNCTION dies(key text, payload text, id text DEFAULT 'an id', reason text DEFAULT 'handler', source text DEFAULT 's')
	RETURNS bigint LANGUAGE sql AS $$
	SELECT inbox_fail((key, payload::bytea, '{"a": "b"}', NULL, id, '2026-01-01', 1, NULL), source, '22023', 'bad payload', reason => reason,
		halt_after => 1000);
	SELECT max(f.id) FROM inbox_failure f $$;
SELECT inbox_configure('s', max_attempts => 1), inbox_configure('t', max_attempts => 1);

-- Without a handler there is nothing to run.
SELECT dies('k1', 'bad') AS k1 \gset
\set VERBOSITY terse
SELECT inbox_retry(:k1);
SELECT * FROM inbox_retry_all('s');
SELECT status, attempts, error FROM inbox_failure WHERE id = :k1;
SELECT handler_signature FROM inbox_serve('s', 'post', 'a subscription');
\set VERBOSITY default
SELECT inbox_retry(:k1);
SELECT status, attempts FROM inbox_failure WHERE id = :k1;

-- Corrected: the original is kept, and so is who did what.
SELECT inbox_retry(:k1, payload => 'good');
SELECT inbox_retry(:k1, payload => 'good');
SELECT status, convert_from(payload, 'UTF8') AS payload, convert_from(retry_payload, 'UTF8') AS applied, retry_key,
	settled_by = session_user AS by_me, settled_at IS NOT NULL AS settled, settled_why FROM inbox_failure WHERE id = :k1;
SELECT inbox_result('k1', 's');
-- The message as it was is still a duplicate.
SELECT inbox_process('k1', 'bad', 'post', 's');

-- A message without a key gets one, which must be free; with a bad one nothing happens.
SELECT dies(NULL, 'good', 'm1', 'no_key') AS m1 \gset
SELECT inbox_retry(:m1, key => 'k1');
\echo :SQLSTATE
SELECT inbox_retry(:m1, key => '');
\echo :SQLSTATE
SELECT inbox_retry(:m1, key => 'k2');
SELECT key, status, retry_key FROM inbox_failure WHERE id = :m1;
SELECT key FROM inbox_claim ORDER BY key;
SELECT inbox_process('k2', 'good', 'post', 's');

-- Many at once leave it out, unless it is asked for: nobody has given it a key.
SELECT dies(NULL, 'good', 'm7', 'no_key') AS m7 \gset
SELECT dies('mid:m8', 'good', 'm8', 'native_dead_letter') AS m8 \gset
SELECT * FROM inbox_retry_all('s');
SELECT * FROM inbox_retry_all('s', up_to => 1, without_key => true);
SELECT inbox_retry(:m8, key => 'k8');
SELECT key, status, retry_key FROM inbox_failure WHERE id IN (:m7, :m8) ORDER BY id;

-- What could not be decoded is kept whole: no payload for a handler before somebody has made it one.
SELECT dies(NULL, '{"ackId": "…"}', 'm0', 'undecodable') AS m0 \gset
\set VERBOSITY terse
SELECT inbox_retry(:m0, key => 'k0');
\set VERBOSITY default
SELECT * FROM inbox_retry_all('s');
SELECT inbox_retry(:m0, payload => 'good', key => 'k0');
SELECT key, status, attempts, sqlstate, retry_key FROM inbox_failure WHERE id = :m0;

-- A conflict is ended by a new key, or by discarding it.
SELECT verdict FROM inbox_process_batch(ARRAY[('k2', 'other', NULL, NULL, 'm2', NULL, NULL, NULL)]::inbox_message[], 'post', 's');
SELECT max(id) AS c1 FROM inbox_failure \gset
\set VERBOSITY terse
SELECT inbox_retry(:c1);
\set VERBOSITY default
SELECT inbox_retry(:c1, key => 'k2');
SELECT inbox_retry(:c1, key => 'k3');
SELECT verdict FROM inbox_process_batch(ARRAY[('k2', 'third', NULL, NULL, 'm3', NULL, NULL, NULL)]::inbox_message[], 'post', 's');
SELECT max(id) AS c2 FROM inbox_failure \gset
SELECT inbox_discard(:c2, NULL);
SELECT inbox_discard(:c2, 'the producer took it back');
SELECT inbox_discard(:c2, 'again');
SELECT inbox_retry(:c2, key => 'k4');
SELECT key, status, retry_key, settled_why FROM inbox_failure WHERE id IN (:c1, :c2) ORDER BY id;

-- What is discarded is not applied when it comes again.
SELECT verdict FROM inbox_fail(('k5', 'bad', NULL, NULL, 'm5', NULL, NULL, NULL), 't', '40P01', 'nothing counted');
SELECT inbox_configure('t', max_attempts => 5);
SELECT verdict FROM inbox_fail(('k5', 'bad', NULL, NULL, 'm5', NULL, NULL, NULL), 't', '22023', 'bad payload');
SELECT max(id) AS k5 FROM inbox_failure \gset
SELECT inbox_retry(:k5);
SELECT inbox_discard(:k5, 'not ours');
SELECT inbox_process('k5', 'bad', 'post', 't');
UPDATE inbox_source SET purged_before = '2026-02-01' WHERE name = 't';
SELECT verdict FROM inbox_process_batch(ARRAY[('k6', 'x', NULL, NULL, 'm6', '2026-01-01', NULL, NULL)]::inbox_message[], 'post', 't');
SELECT max(id) AS k6 FROM inbox_failure \gset
SELECT inbox_retry(:k6);
SELECT inbox_discard(:k6, 'too old');
SELECT verdict FROM inbox_process_batch(ARRAY[('k6', 'x', NULL, NULL, 'm6', '2026-01-01', NULL, NULL)]::inbox_message[], 'post', 't');

-- What is not there.
SELECT inbox_retry(0);
\echo :SQLSTATE
SELECT inbox_retry(NULL);
SELECT inbox_discard(0, 'x');

-- Many at once, oldest first; one that fails again stays dead; a deadlock undoes the call.
SELECT count(dies('a' || i, CASE WHEN i % 3 = 0 THEN 'bad' ELSE 'good' END)) FROM generate_series(1, 10) i;
UPDATE inbox_failure SET failed_at = '2026-01-01'::timestamptz + substring(key, 2)::int * interval '1 hour' WHERE key ~ '^a\d';
SELECT * FROM inbox_retry_all('s', up_to => 4);
SELECT * FROM inbox_retry_all('s', sqlstate => '99999');
SELECT * FROM inbox_retry_all('elsewhere');
SELECT * FROM inbox_retry_all('s', failed_from => '2026-01-01 06:00', failed_to => '2026-01-01 09:00');
SELECT * FROM inbox_retry_all(sqlstate => '22023');
SELECT key, status, attempts, detail, hint FROM inbox_failure WHERE key ~ '^a\d' ORDER BY failed_at;
SELECT key FROM ledger WHERE key ~ '^a\d' ORDER BY n;
-- Whoever tried what failed again is on record with each time.
SELECT f.key, a.act, a.who = session_user AS by_me, a.detail FROM inbox_audit a JOIN inbox_failure f ON f.id = a.failure_id ORDER BY a.id;
SELECT inbox_retry_all(status => 'conflict');
SELECT inbox_retry_all(status => NULL);
SELECT count(dies('b' || i, CASE i WHEN 2 THEN 'busy' ELSE 'good' END)) FROM generate_series(1, 3) i;
SELECT * FROM inbox_retry_all('s');
\echo :SQLSTATE
SELECT key, status FROM inbox_failure WHERE key ~ '^b\d' ORDER BY key;

-- A key that an operator has given to another message is no longer retried: what is behind it goes on.
SELECT verdict FROM inbox_fail(('w1', 'good', NULL, 'w', 'id of w1', '2026-01-01', 1, NULL), 'w', '22023', 'bad payload');
SELECT handler_signature FROM inbox_serve('w', 'post', 'another subscription');
SELECT inbox_configure('w', max_attempts => 1);
SELECT dies('w9', 'other', source => 'w') AS w9 \gset
SELECT inbox_retry(:w9, key => 'w1');
SELECT key, verdict FROM inbox_process_batch(ARRAY[('w1', 'good', NULL, 'w', 'id of w1', '2026-01-01', 1, NULL)
	]::inbox_message[], 'post', 'w');
SELECT key, verdict FROM inbox_process_batch(ARRAY[('w2', 'good', NULL, 'w', 'id of w2', '2026-01-02', 1, NULL)
	]::inbox_message[], 'post', 'w');
SELECT key, status FROM inbox_failure WHERE key ~ '^w' ORDER BY key;

-- Settings.
SELECT inbox_configure('u');
SELECT inbox_configure('u', dedup_window => '44 days');
SELECT inbox_configure('u', dedup_window => '44 days', force => true);
SELECT inbox_configure('u', dedup_window => '44 days', force => true, reason => 'a test');
SELECT inbox_configure('u', dedup_window => '60 days', max_attempts => 7, conflict_check => false, order_policy => 'park', lock_group => 'g');
SELECT inbox_configure('u', dedup_window => '0', lock_group => '');
SELECT event, detail - 'by' AS detail, detail->>'by' = session_user AS by_me FROM inbox_history(NULL, 'u');
SELECT configured_by = session_user AS by_me, configured_at > created_at AS later FROM inbox_source WHERE name = 'u';
SELECT inbox_configure('u', max_attempts => 0);
SELECT inbox_configure('u', order_policy => 'other');
SELECT inbox_configure('u', dedup_window => '-1 day');
SELECT inbox_configure(NULL);

-- Where is the message?
CREATE FUNCTION history(key text, source text DEFAULT NULL) RETURNS TABLE (event text, detail jsonb) LANGUAGE sql AS $$
	SELECT event, detail - 'failure' - 'by' - 'publish_time' - 'retry_at' FROM inbox_history(key, source) $$;
SELECT * FROM history('k1');
SELECT * FROM history('k2');
SELECT * FROM history('k3');
SELECT * FROM history('mid:m1');
SELECT * FROM history('k5');
SELECT * FROM history('k6');
SELECT * FROM history('a3', 's');
SELECT * FROM history('a3', 't');
SELECT * FROM history('never seen');

-- An operator runs the handler with his own rights.
CREATE ROLE inbox_operator ROLE CURRENT_USER;
SELECT inbox_grant('inbox_operator', 'operator');
SET ROLE inbox_operator;
SELECT max(id) AS a3 FROM inbox_failure WHERE key = 'a3' \gset
SELECT inbox_retry(:a3, payload => 'good');
RESET ROLE;
GRANT INSERT ON ledger TO inbox_operator;
GRANT USAGE ON SEQUENCE ledger_n_seq TO inbox_operator;
SET ROLE inbox_operator;
SELECT inbox_retry(:a3, payload => 'good');
SELECT count(*) FROM history('a3');
SELECT inbox_configure('u', max_attempts => 3);
SELECT resolved FROM inbox_retry_all('s', up_to => 0);
UPDATE inbox_failure SET status = 'resolved';
RESET ROLE;
SELECT who FROM ledger WHERE key = 'a3';
SELECT inbox_revoke('inbox_operator', 'operator');

DROP EXTENSION inbox CASCADE;
DROP FUNCTION post, dies, history;
DROP TABLE ledger;
DROP ROLE inbox_operator;
