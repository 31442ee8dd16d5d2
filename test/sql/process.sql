-- SPDX-License-Identifier: PostgreSQL
-- The three forms of a handler, the four types of a payload, and what a call returns.
CREATE EXTENSION inbox;
CREATE TABLE ledger (key text, amount numeric, form text);

CREATE FUNCTION take_jsonb(p jsonb) RETURNS void LANGUAGE sql AS
	$$ INSERT INTO ledger VALUES (NULL, (p->>'amount')::numeric, 'jsonb') $$;
CREATE FUNCTION take_json(k text, p json) RETURNS int LANGUAGE sql AS
	$$ INSERT INTO ledger VALUES (k, (p->>'amount')::numeric, 'key, json ' || p); SELECT 42 $$;
CREATE FUNCTION take_text(k text, p text) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO ledger VALUES (k, length(p), 'key, text ' || p); END $$;
CREATE FUNCTION take_bytea(p bytea) RETURNS void LANGUAGE sql AS
	$$ INSERT INTO ledger VALUES (NULL, length(p), 'bytea ' || encode(p, 'escape')) $$;
CREATE FUNCTION take_message(m inbox_message) RETURNS jsonb LANGUAGE sql AS
	$$ INSERT INTO ledger VALUES (m.key, NULL, 'message ' || m::text);
	   SELECT jsonb_build_object('done', m.key) $$;

-- An untyped literal works, whatever the handler takes.
SELECT inbox_process('k1', '{"amount": 10}', 'take_jsonb');
SELECT inbox_process('k2', '{"amount": 10}', 'take_json');
SELECT inbox_process('k3', '{"amount": 10}', 'take_text');
SELECT inbox_process('k4', '{"amount": 10}', 'take_bytea');
SELECT inbox_process('k5', '{"amount": 10}', 'take_message');
SELECT * FROM ledger ORDER BY form;
TRUNCATE ledger;

-- Every type of payload reaches every type of argument.
SELECT p.type, h.handler, CASE p.type
	WHEN 'jsonb' THEN inbox_process(p.type || h.handler, '{"amount":1}'::jsonb, h.handler::regproc)
	WHEN 'json' THEN inbox_process(p.type || h.handler, '{"amount":1}'::json, h.handler::regproc)
	WHEN 'text' THEN inbox_process(p.type || h.handler, '{"amount":1}'::text, h.handler::regproc)
	WHEN 'bytea' THEN inbox_process(p.type || h.handler, '{"amount":1}'::bytea, h.handler::regproc)
	END AS applied
FROM (VALUES ('jsonb'), ('json'), ('text'), ('bytea')) AS p(type),
	(VALUES ('take_jsonb'), ('take_json'), ('take_text'), ('take_bytea'), ('take_message')) AS h(handler)
ORDER BY 1, 2;
SELECT * FROM ledger ORDER BY form, key, amount;
TRUNCATE ledger;

-- A second time is a duplicate, whatever the handler; another source knows nothing of the key.
SELECT inbox_process('k1', '{"amount": 10}', 'take_jsonb');
SELECT inbox_process('k1', '{"amount": 10}', 'take_text');
SELECT inbox_process('k1', '{"amount": 10}', 'take_jsonb', 'elsewhere');
SELECT inbox_process('k1', '{"amount": 10}', 'take_jsonb', source => 'elsewhere');
SELECT * FROM ledger;
TRUNCATE ledger;

-- A handler's error is the caller's, and undoes the claim.
CREATE FUNCTION fail(p jsonb) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN
		INSERT INTO ledger VALUES (NULL, 0, 'never seen');
		RAISE EXCEPTION 'no such account' USING ERRCODE = 'P0123', DETAIL = 'd', HINT = 'h';
	END $$;
SELECT inbox_process('k6', '{}', 'fail');
\echo :SQLSTATE
SELECT count(*) FROM ledger;
SELECT inbox_process('k6', '{}', 'take_jsonb');
BEGIN;
SELECT inbox_process('k7', '{"amount": 7}', 'take_jsonb');
ROLLBACK;
SELECT inbox_process('k7', '{"amount": 7}', 'take_jsonb');
-- Also up to a savepoint, and again.
BEGIN;
SAVEPOINT s;
SELECT inbox_process('k8', '{"amount": 8}', 'take_jsonb');
ROLLBACK TO s;
SELECT inbox_process('k8', '{"amount": 8}', 'take_jsonb');
SELECT inbox_process('k8', '{"amount": 8}', 'take_jsonb');
COMMIT;
SELECT amount FROM ledger WHERE amount > 0 ORDER BY amount;

-- The error names the key, and no key can forge that line.
SELECT inbox_process(E'two\nlines "quoted" \\ and more', '{', 'take_jsonb');
SELECT inbox_process('k9', '\xc3'::bytea, 'take_jsonb');
SELECT inbox_process('k9', '\x6100'::bytea, 'take_text');
SELECT inbox_process('k9', '\xc3'::bytea, 'take_bytea');
SELECT inbox_process('k10', '{"a": "\u0000"}', 'take_json');
SELECT inbox_process('k10', '{"a": "\u0000"}', 'take_jsonb');

-- A handler sees its arguments with a collation, so it can compare them.
CREATE FUNCTION compare(k text, p text) RETURNS jsonb LANGUAGE plpgsql AS
	$$ BEGIN RETURN to_jsonb(p > k); END $$;
SELECT inbox_process('a', 'b', 'compare');
SELECT inbox_result('a');

-- What a handler returns is kept if it is jsonb.
SELECT inbox_result('k5'), inbox_result('k1'), inbox_result('nothing'), inbox_result('a', 'elsewhere');
CREATE FUNCTION null_result(p jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT NULL::jsonb $$;
SELECT inbox_process('k11', '{}', 'null_result');
SELECT count(*) FROM inbox_claim_result WHERE key = 'k11';

-- A call without a handler.
SELECT inbox_accept('m1', 'x'), inbox_accept('m1', 'x'), inbox_accept('m1'), inbox_accept('m1', source => 'two');
SELECT inbox_accept('m2'), inbox_accept('m2', 'x');
SELECT inbox_accept(NULL);
SELECT inbox_accept('m1', NULL, NULL);
SELECT inbox_accept('m1', NULL, '');
SELECT inbox_accept('m1', NULL, repeat('s', 1025));
SELECT inbox_accept('m1', NULL, repeat('s', 1024));

-- No payload.
SELECT inbox_process('k12', NULL::jsonb, 'take_jsonb');
SELECT inbox_process('k13', NULL::bytea, 'take_message');
SELECT form FROM ledger WHERE key = 'k13';

-- The hash: of the bytes, or of a jsonb's text; the lowest bit tells which.
SELECT inbox_process('h1', 'abc', 'take_text'), inbox_process('h2', 'abc'::bytea, 'take_text'),
	inbox_process('h3', '"abc"'::json, 'take_text'), inbox_process('h4', '"abc"'::jsonb, 'take_text');
SELECT c.key, c.payload_hash = inbox_payload_hash('abc') AS bytes,
	c.payload_hash & ~1::bigint = inbox_payload_hash('"abc"') AS json, c.payload_hash & 1 AS form
FROM inbox_claim c WHERE c.key ~ '^h[0-9]$' ORDER BY c.key COLLATE "C";

DROP EXTENSION inbox CASCADE;
DROP TABLE ledger;
