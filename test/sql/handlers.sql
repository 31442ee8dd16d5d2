-- SPDX-License-Identifier: PostgreSQL
-- What cannot be a handler is refused before anything is claimed.
CREATE EXTENSION inbox;
CREATE TABLE ledger (key text);

CREATE PROCEDURE a_procedure(p jsonb) LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO ledger VALUES ('half'); COMMIT; RAISE EXCEPTION 'the other half'; END $$;
CREATE AGGREGATE an_aggregate(jsonb) (sfunc = jsonb_concat, stype = jsonb);
CREATE FUNCTION a_set(p jsonb) RETURNS SETOF int LANGUAGE sql AS $$ SELECT 1 $$;
CREATE FUNCTION a_table(p jsonb) RETURNS TABLE (a int) LANGUAGE sql AS $$ SELECT 1 $$;
CREATE FUNCTION no_argument() RETURNS void LANGUAGE sql AS $$ $$;
CREATE FUNCTION of_int(i int) RETURNS void LANGUAGE sql AS $$ $$;
CREATE FUNCTION swapped(p jsonb, k text) RETURNS void LANGUAGE sql AS $$ $$;
CREATE FUNCTION three(k text, p jsonb, more int DEFAULT 1) RETURNS void LANGUAGE sql AS $$ $$;
CREATE FUNCTION any_element(p anyelement) RETURNS void LANGUAGE sql AS $$ $$;
CREATE FUNCTION a_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE FUNCTION pg_temp.a_temporary(p jsonb) RETURNS void LANGUAGE sql AS $$ $$;
CREATE FUNCTION overloaded(p jsonb) RETURNS void LANGUAGE sql AS $$ INSERT INTO ledger VALUES ('jsonb') $$;
CREATE FUNCTION overloaded(p text) RETURNS void LANGUAGE sql AS $$ INSERT INTO ledger VALUES ('text') $$;

SELECT inbox_process('k', '{}'::jsonb, 'a_procedure');
\echo :SQLSTATE
SELECT inbox_process('k', '{}'::jsonb, 'an_aggregate');
SELECT inbox_process('k', '{}'::jsonb, 'a_set');
SELECT inbox_process('k', '{}'::jsonb, 'a_table');
SELECT inbox_process('k', '{}'::jsonb, 'no_argument');
SELECT inbox_process('k', '{}'::jsonb, 'of_int');
SELECT inbox_process('k', '{}'::jsonb, 'swapped');
SELECT inbox_process('k', '{}'::jsonb, 'three');
SELECT inbox_process('k', '{}'::jsonb, 'any_element');
SELECT inbox_process('k', '{}'::jsonb, 'a_trigger');
\set VERBOSITY terse
SELECT regexp_replace(pg_my_temp_schema()::regnamespace::text, '\d+', 'N');
DO $$ BEGIN
	PERFORM inbox_process('k', '{}'::jsonb, 'pg_temp.a_temporary');
EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLSTATE;
END $$;
\set VERBOSITY default
SELECT inbox_process('k', '{}'::jsonb, NULL);
SELECT inbox_process('k', '{}'::jsonb, 0);
\echo :SQLSTATE
SELECT inbox_process('k', '{}'::jsonb, 'overloaded');
SELECT inbox_process('k', '{}'::jsonb, 'missing');
SELECT * FROM inbox_process_batch('{}', 'a_procedure');
SELECT count(*) FROM inbox_claim;

-- An overloaded one is named by its signature.
SELECT inbox_process('k', '{}'::jsonb, 'overloaded(text)'::regprocedure);
SELECT inbox_handler('overloaded(jsonb)');
SELECT inbox_handler('overloaded');
SELECT inbox_handler('a_set');
SELECT * FROM ledger;

-- COMMIT cannot be had from inside.
CREATE FUNCTION commits(p jsonb) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO ledger VALUES ('half'); COMMIT; END $$;
SELECT inbox_process('k-commits', '{}', 'commits');
CREATE FUNCTION calls(p jsonb) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN CALL a_procedure(p); END $$;
SELECT inbox_process('k-calls', '{}', 'calls');
SELECT key FROM inbox_claim;

-- A strict function that would silently not run for a message is refused, for that message.
CREATE FUNCTION strict_one(k text, p jsonb) RETURNS void LANGUAGE sql STRICT AS
	$$ INSERT INTO ledger VALUES (k) $$;
SELECT inbox_process('s1', NULL::jsonb, 'strict_one');
\echo :SQLSTATE
SELECT inbox_process('s1', '{}'::jsonb, 'strict_one');
SELECT * FROM inbox_process_batch(ARRAY[('s2', '{}', NULL, NULL, NULL, NULL, NULL, NULL),
	('s3', NULL, NULL, NULL, NULL, NULL, NULL, NULL)]::inbox_message[], 'strict_one');
CREATE FUNCTION strict_message(m inbox_message) RETURNS void LANGUAGE sql STRICT AS
	$$ INSERT INTO ledger VALUES (m.key || '!') $$;
SELECT verdict FROM inbox_process_batch(
	ARRAY[('s4', NULL, NULL, NULL, NULL, NULL, NULL, NULL)]::inbox_message[], 'strict_message');
SELECT * FROM ledger;

-- The attributes are there for the handler, a trace that the publisher began among them.
CREATE FUNCTION traced(m inbox_message) RETURNS void LANGUAGE sql AS $$ INSERT INTO ledger
	VALUES (coalesce(m.attributes->>'googclient_traceparent', m.attributes->>'traceparent')) $$;
SELECT verdict FROM inbox_process_batch(ARRAY[
	('t1', 'p', '{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}',
		NULL, NULL, NULL, NULL, NULL),
	('t2', 'p', '{"googclient_traceparent": "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}',
		NULL, NULL, NULL, NULL, NULL)]::inbox_message[], 'traced');
SELECT * FROM ledger WHERE key LIKE '00-%';

DROP EXTENSION inbox CASCADE;
DROP TABLE ledger;
DROP PROCEDURE a_procedure;
DROP AGGREGATE an_aggregate(jsonb);
DROP FUNCTION a_set, a_table, no_argument, of_int, swapped, three, any_element, a_trigger,
	overloaded(jsonb), overloaded(text), commits, calls, strict_one;
