-- SPDX-License-Identifier: PostgreSQL
-- The time to go back to after a restore, worked out from what was restored.
SET timezone = 'UTC';
CREATE EXTENSION inbox;
CREATE FUNCTION f(p jsonb) RETURNS void LANGUAGE sql AS $$ $$;
CREATE VIEW point AS SELECT moved, served_since IS NOT NULL AS served, newest_claim, newest_publish, longest_way,
	oldest_waiting, waiting, seek_to FROM inbox_restore_point('s');
SELECT count(*) FROM point;
SELECT halted_since FROM inbox_serve('s', 'f', 'a');
SELECT moved, served, newest_claim, seek_to FROM point;

-- Another timeline, and no puller so far: what is there was restored.
INSERT INTO inbox_claim (source_id, key, publish_time, claimed_at) SELECT s.id, c.* FROM inbox_source s, (VALUES
	('late', timestamptz '2026-01-31 08:00:00Z', timestamptz '2026-01-31 11:00:00Z'),
	('quick', '2026-01-31 11:59:50Z', '2026-01-31 11:59:55Z'),
	('newest', '2026-01-31 11:59:00Z', '2026-01-31 12:00:00Z'),
	('from a clock ahead', '2026-01-31 11:58:01Z', '2026-01-31 11:58:00Z'),
	('long ago', '2026-01-20 12:00:00Z', '2026-01-29 12:00:00Z'),
	('imported', NULL, '2026-01-31 11:30:00Z')) AS c(key, publish_time, claimed_at);
SELECT moved FROM point;
UPDATE inbox_source SET cluster = '1/00000001';
SELECT moved, served, newest_claim, newest_publish, longest_way, seek_to FROM point;
SELECT seek_to FROM inbox_restore_point('s', '1 hour');
-- What is tried again may have been published before that; another source's does not count.
INSERT INTO inbox_failure (source_id, key, status, reason, publish_time) SELECT s.id, f.* FROM inbox_source s, (VALUES
	('r1', 'retrying', 'handler', timestamptz '2026-01-31 05:00:00Z'), ('r2', 'retrying', 'handler', '2026-01-31 11:00:00Z'),
	('d', 'dead', 'handler', '2026-01-30 05:00:00Z')) AS f(key, status, reason, publish_time);
INSERT INTO inbox_failure (source_id, key, status, reason, publish_time)
	VALUES (4711, 'r', 'retrying', 'handler', '2026-01-01 05:00:00Z');
INSERT INTO inbox_claim (source_id, key, claimed_at) VALUES (4711, 'other', now());
SELECT oldest_waiting, waiting, seek_to FROM point;
DELETE FROM inbox_failure;

-- Once a puller has come, what it claims is left out, however often it comes.
SELECT halted_since FROM inbox_serve('s', 'f', 'a');
SELECT halted_since FROM inbox_serve('s', 'f', 'a');
SELECT inbox_process('new', '{}', 'f', 's');
SELECT moved, served, newest_claim, newest_publish, longest_way, seek_to FROM point;
SELECT event, detail->>'from' AS "from", detail->>'to' = inbox_cluster() AS "to here" FROM inbox_history(NULL, 's');

-- A source that nothing was ever claimed in has no such time.
DELETE FROM inbox_claim;
SELECT moved, newest_claim, seek_to FROM point;
-- One that no puller has served may have been restored or not.
SELECT inbox_process('k', '{}', 'f', 'unserved');
SELECT moved, served_since, seek_to IS NOT NULL AS known FROM inbox_restore_point('unserved');

DROP VIEW point;
DROP EXTENSION inbox;
DROP FUNCTION f;
