-- SPDX-License-Identifier: PostgreSQL
-- A source remembers what it was last served with.
\set SHOW_CONTEXT never
CREATE EXTENSION inbox;
CREATE FUNCTION first(p jsonb) RETURNS void LANGUAGE sql AS $$ $$;
CREATE FUNCTION second(p jsonb) RETURNS void LANGUAGE sql AS $$ $$;
CREATE FUNCTION second(p text) RETURNS void LANGUAGE sql AS $$ $$;
CREATE SCHEMA other;
CREATE FUNCTION other.third(m inbox_message) RETURNS void LANGUAGE sql AS $$ $$;

SELECT handler_signature, halted_since FROM inbox_serve('s', 'first', 'projects/p/subscriptions/a');
SELECT handler_signature FROM inbox_serve('s', 'public.first', 'projects/p/subscriptions/a');
SELECT handler_signature FROM inbox_serve('s', 'public.first(jsonb)', 'projects/p/subscriptions/a');
-- It is the same handler however identifiers are written.
SET quote_all_identifiers = on;
SELECT handler_signature FROM inbox_serve('s', 'first', 'projects/p/subscriptions/a');
RESET quote_all_identifiers;
SELECT inbox_serve('s', 'second(jsonb)', 'projects/p/subscriptions/a');
\echo :SQLSTATE
SELECT inbox_serve('s', 'first', 'projects/p/subscriptions/b');
SELECT inbox_serve('s', 'other.third', 'projects/p/subscriptions/b');
SELECT handler_signature FROM inbox_serve('s', 'other.third', 'projects/p/subscriptions/b', take_over => true);
SELECT handler_signature FROM inbox_serve('s', 'other.third', 'projects/p/subscriptions/b');
SELECT name, handler, subscription, served_at IS NOT NULL AS served FROM inbox_source;
SELECT handler, subscription, served_at IS NOT NULL AS served, halted_since, dedup_window FROM inbox_served('s');
SELECT count(*) FROM inbox_served('t');
-- Whoever took it over is on record, once, with what was there before.
SELECT event, detail - 'by' AS detail, detail->>'by' = session_user AS by_me FROM inbox_history(NULL, 's');

SELECT inbox_serve('s', 'second', 'a');
SELECT inbox_serve('s', 'missing', 'a');
\echo :SQLSTATE
SELECT inbox_serve('s', 'missing(jsonb)', 'a');
-- PostgreSQL misses the schema, and from 16 on the function.
DO $$ BEGIN PERFORM inbox_serve('s', 'nowhere.first', 'a');
EXCEPTION WHEN invalid_schema_name OR undefined_function THEN RAISE NOTICE 'not there'; END $$;
SELECT inbox_serve('s', 'first(', 'a');
SELECT inbox_serve('s', '', 'a');
SELECT inbox_serve('s', NULL, 'a');
SELECT inbox_serve(NULL, 'first', 'a');
SELECT inbox_serve('', 'first', 'a');

-- A source that was only used is served without a question, and its keys are known.
SELECT inbox_process('k', '{}', 'first', 'used before');
SELECT handler_signature FROM inbox_serve('used before', 'second(text)', 'a');
SELECT inbox_process('k', '{}', 'first', 'used before');

-- The lock: one for each source, or one for a group of them.
SELECT count(DISTINCT lock_key) FROM inbox_source;
SELECT inbox_serve('g1', 'first', 'a', lock_group => 'g') IS NOT NULL;
SELECT inbox_serve('g2', 'first', 'a', lock_group => 'g') IS NOT NULL;
SELECT count(DISTINCT lock_key) FROM inbox_source WHERE name IN ('g1', 'g2');
SELECT s.lock_key = i.lock_key AS as_stored FROM inbox_serve('g2', 'first', 'a') s, inbox_source i WHERE i.name = 'g2';
CREATE VIEW held AS SELECT s.name, l.mode FROM pg_locks l JOIN inbox_source s
	ON s.lock_key = (l.classid::bigint << 32 | l.objid::bigint)
	WHERE l.locktype = 'advisory' AND l.pid = pg_backend_pid() AND l.objsubid = 1;
BEGIN;
SELECT inbox_process('k', '{}', 'first', 's');
SELECT * FROM held;
SELECT inbox_lock('s', exclusive => true);
SELECT * FROM held ORDER BY mode;
COMMIT;
BEGIN;
SELECT inbox_accept('k', NULL, 's');
SELECT * FROM held;
SELECT inbox_lock('g1');
SELECT * FROM held ORDER BY name;
COMMIT;
SELECT * FROM held;

DROP VIEW held;
DROP EXTENSION inbox CASCADE;
SET client_min_messages = warning;
DROP SCHEMA other CASCADE;
DROP FUNCTION first, second(jsonb), second(text);
