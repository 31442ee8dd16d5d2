-- SPDX-License-Identifier: PostgreSQL
-- A key is its bytes: nothing is folded, trimmed, normalised or cut.
CREATE EXTENSION inbox;
CREATE FUNCTION noop(p bytea) RETURNS void LANGUAGE sql AS $$ $$;

SELECT inbox_accept(NULL);
SELECT inbox_accept('');
\echo :SQLSTATE
SELECT inbox_process(NULL, ''::bytea, 'noop');
SELECT inbox_process('', ''::bytea, 'noop');
SELECT * FROM inbox_process_batch(ARRAY[('a', NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)]::inbox_message[], 'noop');
SELECT * FROM inbox_process_batch(ARRAY[('a', NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(repeat('x', 1025), NULL, NULL, NULL, NULL, NULL, NULL, NULL)]::inbox_message[], 'noop');
SELECT count(*) FROM inbox_claim;

-- Up to 1024 bytes, whether the index could compress them or not.
SELECT inbox_accept(repeat('a', 1024)), inbox_accept(repeat('a', 1023)), inbox_accept(repeat('a', 1024));
SELECT inbox_accept(repeat('a', 1025));
SELECT inbox_accept(repeat('a', 100000));
SELECT string_agg(encode(sha256(i::text::bytea), 'hex'), '' ORDER BY i) AS noise
	FROM generate_series(1, 17) i \gset
SELECT inbox_accept(left(:'noise', 1024)), inbox_accept(left(:'noise', 1024));
SELECT inbox_accept(left(:'noise', 1025));
-- Bytes, not characters.
SELECT inbox_accept(repeat('é', 512)), inbox_accept(repeat('é', 512));
SELECT inbox_accept(repeat('é', 513));

-- Different bytes, different keys.
SELECT k, inbox_accept(k) AS applied
FROM unnest(ARRAY['Order-A', 'order-a', 'order-a ', ' order-a', U&'\00e9', U&'e\0301', '1', '01', '1.0'])
	WITH ORDINALITY AS u(k, n) ORDER BY n;
SELECT inbox_accept('order-b '::char(10)), inbox_accept('order-b');
SELECT inbox_accept('é'), inbox_accept('e');
-- A key of more bytes than a name can have.
SELECT inbox_accept(repeat('n', 64) || 'x'), inbox_accept(repeat('n', 64) || 'y');

-- Compared as bytes, also in a database whose collation would do it otherwise.
SELECT a.attname, a.attcollation::regcollation FROM pg_attribute a
WHERE a.attrelid = 'inbox_claim'::regclass AND a.attname = 'key';
SELECT i.indcollation[1]::regcollation FROM pg_index i
WHERE i.indrelid = 'inbox_claim'::regclass AND i.indisprimary;

-- The table refuses what got past us.
\set VERBOSITY terse
INSERT INTO inbox_claim (source_id, key) VALUES (1, '');
INSERT INTO inbox_claim (source_id, key) VALUES (1, repeat('a', 1025));

DROP EXTENSION inbox CASCADE;
DROP FUNCTION noop;
