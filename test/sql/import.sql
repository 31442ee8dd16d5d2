-- SPDX-License-Identifier: PostgreSQL
-- The keys of the consumer that is replaced.
\set SHOW_CONTEXT never
CREATE EXTENSION inbox;
SET timezone = 'UTC';
SELECT inbox_import('{b,a,b,c}', 's');
SELECT inbox_import('{c,d,e}', 's', '{2025-01-01 00:00:00,2025-01-02 00:00:00,NULL}');
SELECT key, payload_hash, publish_time, CASE WHEN claimed_at < '2026-01-01' THEN claimed_at END AS claimed_at
FROM inbox_claim ORDER BY key;
SELECT inbox_accept('a', 'x', 's'), inbox_accept('a', NULL, 's'), inbox_accept('a', 'x', 'other');
SELECT inbox_import('{}', 's');
SELECT event, detail - 'by' AS detail, detail->>'by' = session_user AS by_me FROM inbox_history(NULL);
SELECT inbox_import(NULL, 's');
SELECT inbox_import('{{a},{b}}', 's');
SELECT inbox_import('{a,b}', 's', '{2025-01-01}');
SELECT inbox_import('{a,NULL}', 's');
SELECT inbox_import('{f,""}', 's');
SELECT inbox_import(ARRAY['g', repeat('x', 1025)], 's');
SELECT inbox_import('{a}', NULL);
SELECT inbox_import('{a}', '');
SELECT count(*) FROM inbox_claim c JOIN inbox_source s ON s.id = c.source_id WHERE s.name = 's';
DROP EXTENSION inbox CASCADE;
