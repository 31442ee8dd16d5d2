-- SPDX-License-Identifier: PostgreSQL
-- What the benchmarks write to: a ledger, and a copy of the table of claims.
-- Variables: accounts (their number), noop (the path of the library), claims (there before),
-- managed (the path of inbox-managed.sql, where that is to be measured instead of the extension).

\if :{?managed}
	\i :managed
\else
	CREATE EXTENSION inbox;
\endif

CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL DEFAULT 0);
INSERT INTO account SELECT g FROM generate_series(1, :accounts) g;
CREATE TABLE entry (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	key text NOT NULL,
	account int NOT NULL,
	amount bigint NOT NULL,
	at timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION apply_payment(key text, payload jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO entry (key, account, amount)
		VALUES (key, (payload->>'account')::int, (payload->>'amount')::bigint);
	UPDATE account SET balance = balance + (payload->>'amount')::bigint
		WHERE id = (payload->>'account')::int;
END $$;

-- The same in SQL, and handlers that get what was delivered as text and as bytes.
CREATE FUNCTION apply_payment_sql(key text, payload jsonb) RETURNS void LANGUAGE sql AS $$
	INSERT INTO entry (key, account, amount)
		VALUES (key, (payload->>'account')::int, (payload->>'amount')::bigint);
	UPDATE account SET balance = balance + (payload->>'amount')::bigint
		WHERE id = (payload->>'account')::int;
$$;
CREATE FUNCTION note_text(key text, payload text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO entry (key, account, amount) VALUES (key, 1, length(payload));
END $$;
CREATE FUNCTION note_bytes(key text, payload bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO entry (key, account, amount) VALUES (key, 1, length(payload));
END $$;

CREATE FUNCTION noop(key text, payload bytea) RETURNS void
	AS :'noop', 'bench_noop' LANGUAGE C;

CREATE TABLE plain_claim (LIKE inbox_claim INCLUDING ALL);

VACUUM ANALYZE;
