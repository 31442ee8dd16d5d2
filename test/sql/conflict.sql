-- SPDX-License-Identifier: PostgreSQL
-- The same key with another payload is neither applied nor dropped in silence.
CREATE EXTENSION inbox;
CREATE TABLE ledger (key text, payload text);
CREATE FUNCTION take(k text, p text) RETURNS void LANGUAGE sql AS
	$$ INSERT INTO ledger VALUES (k, p) $$;

SELECT inbox_process('k1', '{"amount": 10}', 'take');
SELECT inbox_process('k1', '{"amount": 11}', 'take');
\echo :SQLSTATE
SELECT inbox_accept('k1', '{"amount": 11}');
-- Bytes are compared as bytes, jsonb as jsonb, and one never with the other.
SELECT inbox_process('k1', '{"amount":10}', 'take');
SELECT inbox_process('k1', '{"amount":10}'::jsonb, 'take');
SELECT inbox_process('k2', '{"a":1, "b":2}'::jsonb, 'take'), inbox_process('k2', '{"b":2,   "a":1}'::jsonb, 'take');
SELECT inbox_process('k2', '{"b":3}'::jsonb, 'take');
SELECT inbox_process('k2', '{"b":3}'::bytea, 'take');
-- No payload is never compared.
SELECT inbox_accept('k3'), inbox_accept('k3', 'x'), inbox_accept('k3', 'y');
SELECT inbox_process('k1', NULL::text, 'take');

-- In a batch it is a verdict, and the message is kept, once.
SELECT * FROM inbox_process_batch(ARRAY[('k4', 'a', '{"n": "1"}', NULL, 'm1', '2026-01-01', 1, NULL),
	('k4', 'b', '{"n": "2"}', 'o', 'm2', '2026-01-02', 2, NULL),
	('k1', '{"amount": 10}', NULL, NULL, 'm3', '2026-01-03', NULL, NULL),
	('k1', '{"amount": 12}', NULL, NULL, 'm4', '2026-01-04', NULL, NULL),
	('k4', 'a', NULL, NULL, 'm5', NULL, NULL, NULL)]::inbox_message[], 'take');
SELECT * FROM inbox_process_batch(ARRAY[
	('k4', 'b', '{"n": "2"}', 'o', 'm6', '2026-01-02', 2, NULL)]::inbox_message[], 'take');
SELECT status, reason, attempts, key, convert_from(payload, 'UTF8') AS payload, attributes, ordering_key,
	message_id, publish_time, delivery_attempt, sqlstate, error
FROM inbox_failure ORDER BY id;

-- Where all that is switched off, it is a duplicate.
UPDATE inbox_source SET conflict_check = false;
SELECT inbox_process('k1', '{"amount": 11}', 'take');
SELECT verdict FROM inbox_process_batch(ARRAY[('k4', 'c', NULL, NULL, NULL, NULL, NULL, NULL)]::inbox_message[], 'take');
SELECT * FROM ledger ORDER BY key;

DROP EXTENSION inbox CASCADE;
DROP FUNCTION take;
DROP TABLE ledger;
