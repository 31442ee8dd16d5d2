-- SPDX-License-Identifier: PostgreSQL
-- A batch: one row for each message, in order; all or nothing.
CREATE EXTENSION inbox;
CREATE TABLE ledger (n serial, key text, payload text);
CREATE FUNCTION post(k text, p text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO ledger (key, payload) VALUES (k, p);
	IF p = 'fails' THEN
		RAISE EXCEPTION 'no such account' USING ERRCODE = 'P0042', DETAIL = 'd', HINT = 'h';
	END IF;
	RETURN CASE WHEN p <> 'nothing' THEN jsonb_build_object('posted', p) END;
END
$$;
CREATE FUNCTION messages(VARIADIC pairs text[]) RETURNS inbox_message[] LANGUAGE sql AS $$
	SELECT array_agg((split_part(p, '=', 1), split_part(p, '=', 2)::bytea, NULL, NULL, NULL, NULL,
		NULL, NULL)::inbox_message ORDER BY n) FROM unnest(pairs) WITH ORDINALITY AS u(p, n)
$$;

-- Handlers run in the order given, whatever the order of the keys.
SELECT * FROM inbox_process_batch(messages('c=1', 'a=2', 'b=3', 'a=2', 'a=4'), 'post');
SELECT key, payload FROM ledger ORDER BY n;
SELECT * FROM inbox_process_batch(messages('d=5', 'c=1', 'b=x', 'e=nothing'), 'post');
SELECT key, payload FROM ledger ORDER BY n;
SELECT inbox_result('c'), inbox_result('e');

-- All or nothing; the error passes unchanged and names the message.
SELECT * FROM inbox_process_batch(messages('f=6', 'g=fails', 'h=7'), 'post');
\echo :SQLSTATE
SELECT * FROM inbox_process_batch(messages('f=6', 'h=7'), 'post');
SELECT key, payload FROM ledger WHERE key IN ('f', 'g', 'h') ORDER BY n;

-- None, one, a thousand.
SELECT * FROM inbox_process_batch('{}', 'post');
SELECT * FROM inbox_process_batch(messages('i=8'), 'post');
SELECT verdict, count(*), min(ordinal), max(ordinal) FROM inbox_process_batch((SELECT array_agg(
	(to_char(i, 'FM"key-"0000'), convert_to(repeat('x', 10240), 'UTF8'), NULL, NULL, NULL, NULL, NULL, NULL)::inbox_message)
	FROM generate_series(1, 1000) i), 'post') GROUP BY 1;
SELECT verdict, count(*), min(ordinal), max(ordinal) FROM inbox_process_batch((SELECT array_agg(
	(to_char(i, 'FM"key-"0000'), convert_to(repeat('x', 10240), 'UTF8'), NULL, NULL, NULL, NULL, NULL, NULL)::inbox_message)
	FROM generate_series(1500, 501, -1) i), 'post') GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM ledger WHERE key LIKE 'key-%';

-- What is no array of messages.
SELECT * FROM inbox_process_batch(NULL, 'post');
SELECT * FROM inbox_process_batch(messages('j=9') || NULL::inbox_message, 'post');
SELECT * FROM inbox_process_batch(ARRAY[messages('j=9'), messages('j=9')], 'post');
SELECT * FROM inbox_process_batch(messages('j=9'), NULL);
SELECT * FROM inbox_process_batch(messages('j=9'), 'post', NULL);
SELECT count(*) FROM inbox_claim WHERE key = 'j';

-- A handler that takes the message sees all of it, with the source filled in.
CREATE FUNCTION whole(m inbox_message) RETURNS void LANGUAGE sql AS
	$$ INSERT INTO ledger (key, payload) VALUES (m.key, m::text) $$;
SELECT * FROM inbox_process_batch(ARRAY[
	('k', '\x00ff', '{"a": "1"}', 'o', 'm1', '2026-01-01 00:00:00+00', 3, NULL),
	('l', NULL, NULL, NULL, NULL, NULL, NULL, 'shop')]::inbox_message[], 'whole', 'shop');
SET timezone = 'UTC';
SELECT payload FROM ledger WHERE key IN ('k', 'l') ORDER BY n;
SELECT publish_time FROM inbox_claim WHERE key IN ('k', 'l') ORDER BY key;
SELECT * FROM inbox_process_batch(ARRAY[
	('m', NULL, NULL, NULL, NULL, NULL, NULL, 'other')]::inbox_message[], 'whole', 'shop');

-- What is older than the memory of keys is kept, not applied; unless the key is still there.
UPDATE inbox_source SET purged_before = '2026-02-01' WHERE name = 'shop';
SELECT * FROM inbox_process_batch(ARRAY[
	('k', '\x00ff', NULL, NULL, 'm1', '2026-01-01 00:00:00+00', 3, NULL),
	('n', '\x00ff', NULL, NULL, 'm2', '2026-01-31 23:59:59+00', 3, NULL),
	('n', '\x00ff', NULL, NULL, 'm2', '2026-01-31 23:59:59+00', 3, NULL),
	('o', '\x00ff', NULL, NULL, 'm3', '2026-02-01 00:00:00+00', 3, NULL),
	('p', '\x00ff', NULL, NULL, 'm4', NULL, 3, NULL)]::inbox_message[], 'whole', 'shop');
SELECT * FROM inbox_process_batch(ARRAY[
	('n', '\x00ff', NULL, NULL, 'm5', '2026-01-31 23:59:59+00', 3, NULL)]::inbox_message[], 'whole', 'shop');
SELECT key, status, reason, message_id, error FROM inbox_failure ORDER BY id;

-- Errors inside a batch that is inside a handler: the last line counts.
CREATE FUNCTION nested(k text, p text) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN PERFORM inbox_process_batch(messages('q=1', 'r=fails'), 'post'); END $$;
SELECT * FROM inbox_process_batch(messages('s=1', 't=2'), 'nested');

-- Each message sees what those before it did, also where the planner would put the body of a SQL
-- function in place of its call; and nothing stays open behind a batch.
CREATE FUNCTION before() RETURNS bigint LANGUAGE plpgsql STABLE AS
	$$ BEGIN RETURN (SELECT count(*) FROM ledger); END $$;
CREATE FUNCTION note(k text, n bigint) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO ledger (key, payload) VALUES (k, n); END $$;
CREATE FUNCTION by_select(k text, p text) RETURNS void LANGUAGE sql AS
	'SELECT note(k, before())';
CREATE FUNCTION by_insert(k text, p text) RETURNS jsonb LANGUAGE sql AS
	'INSERT INTO ledger (key, payload) VALUES (k, before()) RETURNING jsonb_build_array(k, p)';
CREATE FUNCTION by_block(k text, p text) RETURNS jsonb LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO ledger (key, payload) VALUES (k, before()); RETURN to_jsonb(p); END $$;
TRUNCATE ledger;
SELECT verdict FROM inbox_process_batch(messages('u1=1', 'u2=2', 'u1=1', 'u3=3'), 'by_select');
SELECT verdict FROM inbox_process_batch(messages('v1=1', 'v2=2', 'u1=1', 'v3=3'), 'by_insert');
SELECT verdict FROM inbox_process_batch(messages('w1=1', 'w2=2', 'w3=3'), 'by_block');
SELECT key, payload FROM ledger ORDER BY n;
SELECT key, inbox_result(key) FROM unnest('{u1,u3,v1,v3,w1,w3}'::text[]) key;
SELECT count(*) FROM pg_cursors WHERE name <> '';

-- A message's ordinal is its place in the array, whatever its subscript.
CREATE FUNCTION by_strict(k text, p text) RETURNS void LANGUAGE plpgsql STRICT AS
	$$ BEGIN INSERT INTO ledger (key, payload) VALUES (k, p); END $$;
SELECT ('[7:9]=' || array_agg(m)::text) AS shifted
	FROM unnest(messages('x1=1', 'x2=2', 'u2=other')) m \gset
SELECT * FROM inbox_process_batch(:'shifted'::inbox_message[], 'by_strict');
SELECT key, convert_from(payload, 'UTF8') FROM inbox_failure WHERE status = 'conflict' ORDER BY id DESC LIMIT 1;
SELECT * FROM inbox_process_batch(('[0:1]=' || messages('x3=3', 'x4=4')::text)::inbox_message[], 'by_select');
SELECT * FROM inbox_process_batch(('[0:1]=' || messages('x5=5', '=6')::text)::inbox_message[], 'by_select');

DROP EXTENSION inbox CASCADE;
DROP FUNCTION post, nested, before, note, by_select, by_insert, by_block, by_strict;
DROP TABLE ledger;
