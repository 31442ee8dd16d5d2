-- SPDX-License-Identifier: PostgreSQL
-- What fails only at the end of its transaction is found out with its message, when many are retried in one.
\set SHOW_CONTEXT never
CREATE EXTENSION inbox;
CREATE TABLE leg (n serial, key text, amount int);
-- Double entry: what one key books sums to zero, once it is complete.
CREATE FUNCTION balanced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (SELECT sum(amount) FROM leg WHERE key = NEW.key) <> 0 THEN
		RAISE check_violation USING MESSAGE = 'the legs of ' || NEW.key || ' do not balance';
	END IF;
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON leg DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION balanced();
-- Puts itself off until after SET CONSTRAINTS ALL IMMEDIATE.
CREATE TABLE closing (key text, step int);
CREATE FUNCTION closes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.step = 2 THEN
		RAISE check_violation USING MESSAGE = 'refused at the last moment: ' || NEW.key;
	END IF;
	SET CONSTRAINTS ALL DEFERRED;
	INSERT INTO closing VALUES (NEW.key, 2);
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER closes AFTER INSERT ON closing DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION closes();
-- Fails at once unless somebody has deferred it.
CREATE TABLE once (key text UNIQUE DEFERRABLE INITIALLY IMMEDIATE);
CREATE FUNCTION post(k text, p text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO leg (key, amount) VALUES (k, -7);
	BEGIN
		INSERT INTO once VALUES ('only');
		INSERT INTO once VALUES ('only');
	EXCEPTION WHEN unique_violation THEN
		-- As it should be.
	END;
	IF p = 'late' THEN
		INSERT INTO closing VALUES (k, 1);
	END IF;
	INSERT INTO leg (key, amount) VALUES (k, CASE p WHEN 'bad' THEN 8 ELSE 7 END);
END $$;
-- "account:day=payload"
CREATE FUNCTION message(m text) RETURNS inbox_message LANGUAGE sql AS $$
	SELECT (split_part(m, '=', 1), split_part(m, '=', 2)::bytea, NULL, nullif(split_part(m, ':', 1), ''), 'id of ' || m,
		'2026-01-01'::timestamptz + substring(m FROM '\d+')::int * interval '1 day', NULL, NULL)::inbox_message $$;
CREATE FUNCTION batch(VARIADIC m text[]) RETURNS TABLE (key text, verdict text) LANGUAGE sql AS $$
	SELECT b.key, b.verdict FROM inbox_process_batch((SELECT array_agg(message(u) ORDER BY n)
		FROM unnest(m) WITH ORDINALITY AS w(u, n)), 'post', 's') b ORDER BY b.ordinal $$;
CREATE FUNCTION dies(m text) RETURNS bigint LANGUAGE sql AS $$
	SELECT inbox_fail(message(m), 's', '23514', 'did not balance', halt_after => 1000);
	SELECT max(f.id) FROM inbox_failure f $$;
CREATE FUNCTION rows(account text) RETURNS TABLE (key text, status text, attempts int, error text) LANGUAGE sql AS $$
	SELECT f.key, f.status, f.attempts, f.error FROM inbox_failure f WHERE f.ordering_key = account ORDER BY f.publish_time $$;
SELECT inbox_configure('s', max_attempts => 1, order_policy => 'park');
SELECT handler_signature FROM inbox_serve('s', 'post', 'a subscription');

-- The followers of a dead message are applied up to the one that does not balance, which is the head of the rest.
SELECT dies('a:1=good') AS a1 \gset
SELECT * FROM batch('a:2=good', 'a:3=bad', 'a:4=good');
SELECT inbox_retry(:a1);
SELECT * FROM rows('a');
SELECT key, sum(amount) FROM leg GROUP BY key ORDER BY min(n);
-- One that puts itself off once more is found as well.
SELECT id AS a3 FROM inbox_failure WHERE key = 'a:3' \gset
SELECT * FROM batch('a:5=late', 'a:6=good');
SELECT inbox_discard(:a3, 'one cent too much');
SELECT * FROM rows('a');
-- It is the head now; alone, its error is that of the call.
SELECT id AS a5 FROM inbox_failure WHERE key = 'a:5' \gset
SELECT inbox_retry(:a5);
SELECT * FROM rows('a') WHERE status <> 'resolved';
SELECT inbox_retry(:a5, payload => 'good');
SELECT * FROM rows('a') WHERE status <> 'resolved';
SELECT count(*) FROM closing;

-- The head that does not balance is named, and so is what is left as it was.
CREATE FUNCTION context_of(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	context text;
BEGIN
	EXECUTE call;
	RETURN NULL;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
	RETURN (SELECT string_agg(m[1], ', ') FROM regexp_matches(context, '/\* (.*?) \*/', 'g') m WHERE m[1] LIKE '%failure%');
END $$;
SELECT dies('b:1=bad') AS b1 \gset
SELECT * FROM batch('b:2=good');
SELECT replace(context_of('SELECT inbox_retry(' || :b1 || ')'), :'b1', 'b:1') AS said;
SELECT replace(context_of('SELECT inbox_retry(' || :b1 || ', payload => ''good'', key => '''')'), :'b1', 'b:1') AS said;
SELECT * FROM rows('b');

-- inbox_retry_all goes on with the others, and notes who tried.
SELECT dies('c:1=good'), dies('d:1=late'), dies('e:1=good');
SELECT * FROM batch('c:2=bad', 'c:3=good');
SELECT resolved, failed, skipped FROM inbox_retry_all('s');
SELECT f.* FROM unnest('{b,c,d,e}'::text[]) account, rows(account) f;
SELECT f.key, a.act, a.who = session_user AS by_me, a.at = f.last_failed_at AS now, a.detail
FROM inbox_audit a JOIN inbox_failure f ON f.id = a.failure_id ORDER BY a.id;
SELECT event, detail - 'failure' - 'by' - 'publish_time' AS detail, detail->>'by' = session_user AS by_me FROM inbox_history('c:2', 's');

-- What the caller's transaction has pending is not taken for a message's fault.
BEGIN;
INSERT INTO leg (key, amount) VALUES ('mine', 1);
SELECT resolved, failed, skipped FROM inbox_retry_all('s');
ROLLBACK;
BEGIN;
INSERT INTO leg (key, amount) VALUES ('mine', 1);
INSERT INTO leg (key, amount) VALUES ('mine', -1);
SELECT resolved, failed, skipped FROM inbox_retry_all('s');
-- Deferred is again what was; what was not is not.
INSERT INTO leg (key, amount) VALUES ('mine too', 1);
INSERT INTO leg (key, amount) VALUES ('mine too', -1);
INSERT INTO once VALUES ('x'), ('x');
ROLLBACK;

-- Also where a constraint that cannot be deferred has the same name. Then all are that can be.
CREATE TABLE other (n int CONSTRAINT balanced CHECK (n > 0));
ALTER TABLE once DROP CONSTRAINT once_key_key, ADD UNIQUE (key);
SELECT dies('f:1=good') AS f1 \gset
SELECT * FROM batch('f:2=good', 'f:3=bad', 'f:4=good');
SELECT inbox_retry(:f1);
SELECT * FROM rows('f');

-- What is deferred runs with the rights of who retries, not with ours.
CREATE ROLE inbox_clerk ROLE CURRENT_USER;
SELECT inbox_grant('inbox_clerk', 'operator');
CREATE TABLE seen (who text);
CREATE FUNCTION sees() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO seen VALUES (current_user);
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER sees AFTER INSERT ON leg DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION sees();
GRANT SELECT, INSERT ON leg, once, seen TO inbox_clerk;
GRANT USAGE ON SEQUENCE leg_n_seq TO inbox_clerk;
SELECT dies('g:1=good') AS g1 \gset
SELECT * FROM batch('g:2=good');
SELECT dies('h:1=good');
SET ROLE inbox_clerk;
SELECT inbox_retry(:g1);
SELECT resolved, failed FROM inbox_retry_all('s', ordering_key => 'h');
RESET ROLE;
SELECT who, count(*) FROM seen GROUP BY 1;
SELECT inbox_revoke('inbox_clerk', 'operator');

DROP EXTENSION inbox CASCADE;
DROP TABLE leg, closing, once, other, seen;
DROP FUNCTION balanced, closes, sees, post, batch, dies, rows, context_of;
DROP ROLE inbox_clerk;
