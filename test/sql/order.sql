-- SPDX-License-Identifier: PostgreSQL
-- A message that failed holds up those after it in its ordering key, and no others.
\set SHOW_CONTEXT never
CREATE EXTENSION inbox;
CREATE TABLE ledger (n serial, key text);
CREATE FUNCTION post(k text, p text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF p = 'bad' THEN RAISE EXCEPTION 'bad payload'; END IF;
	INSERT INTO ledger (key) VALUES (k);
END $$;
-- "account:day=payload"
CREATE FUNCTION message(m text) RETURNS inbox_message LANGUAGE sql AS $$
	SELECT (split_part(m, '=', 1), split_part(m, '=', 2)::bytea, NULL, nullif(split_part(m, ':', 1), ''), 'id of ' || m,
		CASE WHEN m LIKE '%?%' THEN NULL ELSE '2026-01-01'::timestamptz END
		+ substring(m FROM '\d+')::int * interval '1 day', NULL, NULL)::inbox_message $$;
CREATE FUNCTION batch(VARIADIC m text[]) RETURNS TABLE (key text, verdict text) LANGUAGE sql AS $$
	SELECT b.key, b.verdict FROM inbox_process_batch((SELECT array_agg(message(u) ORDER BY n)
		FROM unnest(m) WITH ORDINALITY AS w(u, n)), 'post', 's') b ORDER BY b.ordinal $$;
CREATE FUNCTION fail(m text) RETURNS text LANGUAGE sql AS $$
	SELECT verdict FROM inbox_fail(message(m), 's', 'P0001', 'bad payload') $$;
SELECT handler_signature FROM inbox_serve('s', 'post', 'a subscription');

-- While one is retried, later ones wait; earlier ones, other keys and duplicates do not.
SELECT * FROM batch('a:1=x', 'b:1=x');
SELECT fail('a:3=bad');
SELECT * FROM batch('a:4=x', 'b:4=x', ':5=x', 'a:1=x', 'a:2=x', 'a:?5=x', 'a:4=x');
SELECT key FROM ledger ORDER BY n;
SELECT key FROM inbox_claim WHERE key LIKE 'a:%' ORDER BY key;
-- The one itself is no obstacle to itself, nor to what follows it in the same call.
SELECT * FROM batch('a:4=x', 'a:3=x');
SELECT * FROM batch('a:4=x', 'a:5=x');
SELECT fail('c:1=bad');
SELECT * FROM batch('c:1=x', 'c:2=x', 'c:3=x');
SELECT key FROM ledger WHERE key ~ '^[ac]' ORDER BY n;
SELECT status, count(*) FROM inbox_failure GROUP BY 1;

-- When it dies, those after it go on, by default.
SELECT inbox_configure('s', max_attempts => 1);
SELECT fail('d:1=bad');
SELECT * FROM batch('d:2=x');

-- Or they are parked: acknowledged and kept, in order.
SELECT inbox_configure('s', order_policy => 'park');
SELECT fail('e:1=bad');
SELECT * FROM batch('e:2=x', 'f:2=x', 'e:3=bad', 'e:0=x', ':6=x');
SELECT * FROM batch('e:1=bad', 'e:2=x', 'e:4=x', 'e:4=x');
SELECT key, status, reason, ordering_key, convert_from(payload, 'UTF8') AS payload, sqlstate FROM inbox_failure
WHERE ordering_key = 'e' ORDER BY id;
SELECT id AS e1 FROM inbox_failure WHERE key = 'e:1' \gset
SELECT id AS e2 FROM inbox_failure WHERE key = 'e:2' \gset
SELECT id AS e3 FROM inbox_failure WHERE key = 'e:3' \gset
\set VERBOSITY terse
SELECT inbox_retry(:e2);
\set VERBOSITY default
\echo :SQLSTATE
-- The first one is corrected: the others follow, up to the next one that fails.
SELECT inbox_retry(:e1, payload => 'x');
SELECT key, status, attempts, error FROM inbox_failure WHERE ordering_key = 'e' ORDER BY id;
SELECT * FROM batch('e:5=x');
-- That one is discarded: the rest follows, and then new ones are not parked any more.
SELECT inbox_discard(:e3, 'not ours');
SELECT key, status FROM inbox_failure WHERE ordering_key = 'e' ORDER BY id;
SELECT * FROM batch('e:6=x', 'e:3=bad');
SELECT key FROM ledger WHERE key LIKE 'e:%' ORDER BY n;

-- Who may not run the handler is refused, and nothing dies of it.
SELECT fail('i:1=bad');
SELECT * FROM batch('i:2=x');
CREATE ROLE inbox_operator ROLE CURRENT_USER;
SELECT inbox_grant('inbox_operator', 'operator');
REVOKE ALL ON FUNCTION post FROM PUBLIC;
SELECT id AS i1 FROM inbox_failure WHERE key = 'i:1' \gset
SET ROLE inbox_operator;
SELECT inbox_discard(:i1, 'not ours');
SELECT * FROM inbox_retry_all('s', ordering_key => 'i');
RESET ROLE;
SELECT key, status, attempts, error FROM inbox_failure WHERE ordering_key = 'i' ORDER BY id;
SELECT inbox_revoke('inbox_operator', 'operator');
DROP ROLE inbox_operator;
SELECT inbox_discard(:i1, 'not ours');

-- A dead one is not applied before an earlier one of its ordering key, either.
SELECT fail('j:1=bad'), fail('j:2=x');
\set VERBOSITY terse
SELECT inbox_retry(id) FROM inbox_failure WHERE key = 'j:2';
\set VERBOSITY default
SELECT inbox_discard(id, 'not ours') FROM inbox_failure WHERE key = 'j:1';
SELECT inbox_retry(id) FROM inbox_failure WHERE key = 'j:2';

-- A copy of what is dead, in the same call, is nothing that is applied first.
SELECT fail('h:1=bad');
SELECT * FROM batch('h:1=y', 'h:2=x', 'h:1=bad', 'h:3=x');

-- A message that failed before its ordering key was parked is parked too.
SELECT inbox_configure('s', max_attempts => 5);
SELECT fail('g:2=bad');
SELECT inbox_configure('s', max_attempts => 1);
SELECT fail('g:1=bad');
SELECT * FROM batch('g:2=bad');
SELECT key, status, reason, retry_at FROM inbox_failure WHERE ordering_key = 'g' ORDER BY key;
-- Switching the policy back releases nobody: order would be lost.
SELECT inbox_configure('s', order_policy => 'continue');
SELECT * FROM batch('g:3=x');
SELECT * FROM inbox_retry_all('s', ordering_key => 'g');
SELECT key, status, attempts FROM inbox_failure WHERE ordering_key = 'g' ORDER BY key;

DROP EXTENSION inbox CASCADE;
DROP FUNCTION post, fail, batch;
DROP TABLE ledger;
