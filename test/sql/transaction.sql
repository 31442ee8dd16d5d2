-- SPDX-License-Identifier: PostgreSQL
-- What a transaction that gave a verdict may not do, or does otherwise.
CREATE EXTENSION inbox;
CREATE FUNCTION noop(p text) RETURNS void LANGUAGE sql AS $$ $$;

-- A lower synchronous_commit is raised at COMMIT, for that transaction only. That it is raised is
-- for the crash tests to show; here, that nothing of it stays.
SET synchronous_commit = off;
SELECT inbox_accept('s1');
SHOW synchronous_commit;
BEGIN;
SET LOCAL synchronous_commit = local;
SELECT inbox_accept('s1');
COMMIT;
SHOW synchronous_commit;
RESET synchronous_commit;

-- A transaction that only found a duplicate writes WAL nevertheless, or its COMMIT would not wait.
CREATE TABLE insert_lsn (lsn pg_lsn);
INSERT INTO insert_lsn SELECT pg_current_wal_insert_lsn();
SELECT inbox_accept('s1');
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), lsn) > 0 AS wrote_wal FROM insert_lsn;

-- Read-only: also where only duplicates would be found, since their verdict needs WAL.
BEGIN READ ONLY;
SELECT inbox_accept('s1');
\echo :SQLSTATE
ROLLBACK;
BEGIN READ ONLY;
SELECT inbox_process('s1', 'p', 'noop');
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM inbox_process_batch('{}', 'noop');
ROLLBACK;

-- Never in a parallel worker.
SELECT proname, proparallel, provolatile FROM pg_proc
WHERE proname IN ('inbox_process', 'inbox_accept', 'inbox_process_batch', 'inbox_fail') ORDER BY 1, oid;

-- A source that is created in a transaction that rolls back is not remembered.
BEGIN;
SELECT inbox_process('k1', 'p', 'noop', 'rolled back');
ROLLBACK;
SELECT inbox_process('k1', 'p', 'noop', 'rolled back');
BEGIN;
SAVEPOINT a;
SELECT inbox_process('k1', 'p', 'noop', 'rolled back too');
ROLLBACK TO a;
SELECT inbox_process('k1', 'p', 'noop', 'rolled back too');
COMMIT;
SELECT s.name, c.key FROM inbox_claim c JOIN inbox_source s ON s.id = c.source_id
WHERE s.name LIKE 'rolled%' ORDER BY 1;

-- An error at COMMIT takes the claim with it.
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
CREATE FUNCTION orphan(p text) RETURNS void LANGUAGE sql AS $$ INSERT INTO child VALUES (1) $$;
BEGIN;
SELECT inbox_process('d1', 'p', 'orphan');
COMMIT;
SELECT count(*) FROM inbox_claim WHERE key = 'd1';

DROP EXTENSION inbox CASCADE;
DROP FUNCTION noop, orphan;
DROP TABLE parent, child, insert_lsn;
