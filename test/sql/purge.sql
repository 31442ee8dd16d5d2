-- SPDX-License-Identifier: PostgreSQL
-- Old keys are forgotten, and their messages are not applied again.
\set SHOW_CONTEXT never
CREATE EXTENSION inbox;
CREATE TABLE ledger (key text);
CREATE FUNCTION post(key text, payload text) RETURNS jsonb LANGUAGE sql AS
	$$ INSERT INTO ledger VALUES (key) RETURNING '{"posted": true}'::jsonb $$;
CREATE FUNCTION message(key text, age interval) RETURNS inbox_message LANGUAGE sql AS $$
	SELECT (key, 'p', NULL, NULL, 'm', now() - age, NULL, NULL)::inbox_message $$;
CREATE FUNCTION post_old(key text, age interval, claimed interval DEFAULT NULL, source text DEFAULT 's')
	RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	verdict text;
BEGIN
	SELECT b.verdict INTO verdict FROM inbox_process_batch(ARRAY[message(key, age)], 'post', source) b;
	UPDATE inbox_claim c SET claimed_at = now() - coalesce(claimed, age) WHERE c.key = post_old.key;
	RETURN verdict;
END $$;

-- Without a window nothing is forgotten.
SELECT post_old('k1', '50 days');
CALL inbox_purge();
SELECT state, detail FROM inbox_purge_batch();

SELECT inbox_configure('s', dedup_window => '45 days', settled_window => '90 days');
SELECT post_old('k2', '60 days'), post_old('k3', '50 days', '1 day'), post_old('k4', '1 day', '50 days'),
	post_old('k5', '1 day'), post_old('k6', '70 days', source => 'for ever');
SELECT inbox_import('{i1,i2}', 's', ARRAY[now() - interval '50 days', now() - interval '45 days 1 hour']);
-- What is not settled keeps its key.
SELECT verdict FROM inbox_fail(message('dead', '80 days'), 's', '22012', 'no', reason => 'no_key');
SELECT post_old('conflict', '80 days');
SELECT verdict FROM inbox_process_batch(ARRAY[('conflict', 'other', NULL, NULL, 'm',
	now() - interval '80 days', NULL, NULL)::inbox_message], 'post', 's');
UPDATE inbox_claim SET claimed_at = now() - interval '80 days' WHERE key IN ('dead', 'conflict');
-- What is settled is removed after its own time; what was discarded, when its key is forgotten, too.
SELECT f.verdict FROM unnest('{old,young,remembered}'::text[]) k,
	inbox_fail(message(k, '100 days'), 's', '22012', 'no', reason => 'no_key') f;
SELECT inbox_discard(id, 'a test') FROM inbox_failure WHERE key IN ('old', 'young', 'remembered');
UPDATE inbox_failure SET settled_at = now() - CASE key WHEN 'young' THEN interval '89 days' ELSE '91 days' END
	WHERE status = 'discarded';
UPDATE inbox_claim SET claimed_at = now() - interval '100 days' WHERE key = 'old';
INSERT INTO inbox_audit (source_id, failure_id, act) SELECT source_id, id, 'retried' FROM inbox_failure WHERE key IN ('old', 'young');

-- Of what is not settled nothing goes, however old it is; what was applied after all, after its time.
SELECT inbox_configure('live', max_attempts => 1, order_policy => 'park') IS NOT NULL;
SELECT handler_signature FROM inbox_serve('live', 'post', NULL);
SELECT f.verdict FROM unnest('{head,fixed,fixed lately}'::text[]) k, inbox_fail((k, 'p', NULL,
	CASE k WHEN 'head' THEN 'o' END, 'm', now() - interval '100 days', NULL, NULL), 'live', '22012', 'no') f;
SELECT verdict FROM inbox_process_batch(ARRAY[('follower', 'p', NULL, 'o', 'm', now() - interval '99 days', NULL, NULL)]::inbox_message[],
	'post', 'live');
SELECT post_old('twice', '100 days', source => 'live');
SELECT verdict FROM inbox_process_batch(ARRAY[('twice', 'other', NULL, NULL, 'm', now(), NULL, NULL)]::inbox_message[], 'post', 'live');
SELECT count(inbox_retry(id)) FROM inbox_failure WHERE key ~ 'fixed';
UPDATE inbox_source SET purged_before = now() - interval '80 days' WHERE name = 'live';
SELECT verdict FROM inbox_process_batch(ARRAY[message('late', '90 days')], 'post', 'live');
UPDATE inbox_source SET purged_before = NULL WHERE name = 'live';
SELECT inbox_configure('live', max_attempts => 5, dedup_window => '45 days', settled_window => '90 days') IS NOT NULL;
SELECT verdict FROM inbox_fail(message('again', '100 days'), 'live', '22012', 'no');
UPDATE inbox_claim SET claimed_at = now() - interval '100 days' WHERE key IN ('head', 'follower', 'twice', 'late');
UPDATE inbox_failure SET failed_at = now() - interval '100 days', last_failed_at = now() - interval '100 days',
	settled_at = now() - CASE key WHEN 'fixed' THEN interval '91 days' WHEN 'fixed lately' THEN interval '89 days' END
	WHERE key IN ('head', 'follower', 'twice', 'late', 'again', 'fixed', 'fixed lately');

-- The time is moved, committed, and only then is something deleted.
SELECT state, forgotten, detail FROM inbox_purge_batch();
SELECT now() - purged_before BETWEEN '45 days' AND '45 days 2 hours' AS moved FROM inbox_source WHERE name = 's';
SELECT count(*) FROM inbox_claim;
SELECT state, forgotten, settled, progress FROM inbox_purge_batch();
SELECT state, forgotten, settled, progress FROM inbox_purge_batch();
SELECT key FROM inbox_claim ORDER BY key;
SELECT key FROM inbox_claim_result ORDER BY key;
SELECT key, status FROM inbox_failure ORDER BY key;
SELECT event FROM inbox_history('remembered');
SELECT f.key, a.act FROM inbox_audit a LEFT JOIN inbox_failure f ON f.id = a.failure_id WHERE a.act = 'retried';

-- A message that was being tried again when its time ran out holds nothing up.
SELECT verdict FROM inbox_fail(('tried', 'p', NULL, 'account 1', 'm', now() - interval '50 days', NULL, NULL), 's', '22012', 'no');
SELECT verdict FROM inbox_process_batch(ARRAY[('tried', 'p', NULL, 'account 1', 'm', now() - interval '50 days', NULL, NULL),
	('behind', 'p', NULL, 'account 1', 'm', now(), NULL, NULL)]::inbox_message[], 'post', 's');
SELECT key, status FROM inbox_failure WHERE key IN ('tried', 'behind');
SELECT verdict FROM inbox_process_batch(ARRAY[('behind', 'p', NULL, 'account 1', 'm', now(), NULL, NULL)]::inbox_message[], 'post', 's');

-- A forgotten message that comes late is kept, and not applied; others are what they were.
SELECT m.n, b.key, b.verdict FROM inbox_process_batch(ARRAY[message('k1', '50 days'),
	message('k2', '60 days'), message('k3', '50 days'), message('k4', '1 day'),
	message('k6', '70 days'), message('new', '1 minute')], 'post', 's') b, LATERAL (SELECT b.ordinal AS n) m;
SELECT key, count(*) FROM ledger GROUP BY key ORDER BY key;
SELECT source, expired, purged_before IS NOT NULL AS purged FROM inbox_status();
SELECT handler_signature FROM inbox_serve('s', 'post', NULL);
SELECT inbox_retry(id) FROM inbox_failure WHERE key = 'k2' AND status = 'expired';
SELECT inbox_retry(id, key => 'k3') FROM inbox_failure WHERE key = 'k2' AND status = 'expired';
SELECT inbox_retry(id, key => key) FROM inbox_failure WHERE key = 'k2' AND status = 'expired';
SELECT inbox_retry(id, key => key) FROM inbox_failure WHERE key = 'k2';
SELECT status, retry_key FROM inbox_failure WHERE key = 'k2';
SELECT verdict FROM inbox_process_batch(ARRAY[message('k2', '60 days')], 'post', 's');
SELECT inbox_discard(id, 'looked at it') FROM inbox_failure WHERE key = 'k1' AND status = 'expired';
SELECT verdict FROM inbox_process_batch(ARRAY[message('k1', '50 days')], 'post', 's');

-- Again, as a command that does it all; what was read is not read again before it is due.
CALL inbox_purge(share => 1);
SELECT chunk FROM inbox_purge_chunk WHERE due < now() + interval '9 days';
SELECT chunks, next_chunk, forgotten, finished_at IS NOT NULL AS finished FROM inbox_purge_run;
-- A shorter window is another matter.
SELECT inbox_configure('s', dedup_window => '12 hours', force => true);
SELECT inbox_configure('s', dedup_window => '12 hours', force => true, reason => 'a test');
SELECT act, detail FROM inbox_audit WHERE act = 'forced';
CALL inbox_purge(share => 1);
SELECT key FROM inbox_claim ORDER BY key;
CALL inbox_purge(share => 0);
CALL inbox_purge(share => 1.5);

-- A table that was rewritten is read anew, also in the middle.
SELECT post_old('k7', '13 hours', '13 hours');
SELECT state FROM inbox_purge_batch();
VACUUM FULL inbox_claim;
SELECT state FROM inbox_purge_batch();
CALL inbox_purge(share => 1);
SELECT count(*) FROM inbox_claim WHERE key = 'k7';

-- Another runner steps back while one is at it, and takes over what was left.
SELECT state FROM inbox_purge_batch('one');
SELECT state, detail FROM inbox_purge_batch('other');
UPDATE inbox_purge_run SET batch_at = now() - interval '2 minutes';
SELECT state FROM inbox_purge_batch('other');
SELECT state FROM inbox_purge_batch('other');

-- Many keys in many batches.
SELECT inbox_import(ARRAY(SELECT 'many' || n FROM generate_series(1, 40000) n), 'many',
	ARRAY(SELECT now() - interval '60 days' FROM generate_series(1, 40000)));
SELECT inbox_import(ARRAY(SELECT 'few' || n FROM generate_series(1, 5) n), 'many');
SELECT inbox_configure('many', dedup_window => '45 days') IS NOT NULL;
-- One goes on where another one was cut off, and counts on.
SELECT state FROM inbox_purge_batch('cut off');
SELECT state, forgotten > 0 AND forgotten < 40000 AS some, progress > 0 AND progress < 1 AS begun
	FROM inbox_purge_batch('cut off', 1);
SELECT next_chunk AS cut_off_at, forgotten AS forgotten_by_then, runner FROM inbox_purge_run \gset
UPDATE inbox_purge_run SET batch_at = now() - interval '2 minutes';
SELECT state, forgotten > :forgotten_by_then AS counts_on FROM inbox_purge_batch('the next', 1);
SELECT next_chunk > :cut_off_at AS goes_on, runner FROM inbox_purge_run;
UPDATE inbox_purge_run SET batch_at = now() - interval '2 minutes';
CALL inbox_purge(share => 1);
CALL inbox_purge(share => 1);
SELECT count(*) FROM inbox_claim WHERE key ~ 'many|few';

-- Operators may purge, monitors look.
CREATE ROLE inbox_purge_operator ROLE CURRENT_USER;
CREATE ROLE inbox_purge_monitor ROLE CURRENT_USER;
SELECT inbox_grant('inbox_purge_operator', 'operator'), inbox_grant('inbox_purge_monitor', 'monitor');
SELECT inbox_missing_rights('inbox_purge_monitor', 'operator') ~ 'inbox_purge\(' AS missing, count(*) > 0 AS some
	FROM generate_series(1, 1) GROUP BY 1 ORDER BY 1 DESC LIMIT 1;
SET ROLE inbox_purge_operator;
CALL inbox_purge(share => 1);
SET ROLE inbox_purge_monitor;
SELECT finished_at IS NOT NULL AS finished FROM inbox_purge_run;
CALL inbox_purge();
RESET ROLE;
DROP OWNED BY inbox_purge_operator, inbox_purge_monitor;
DROP ROLE inbox_purge_operator, inbox_purge_monitor;
SET client_min_messages = warning;
DROP EXTENSION inbox CASCADE;
DROP FUNCTION post, post_old;
DROP TABLE ledger;
