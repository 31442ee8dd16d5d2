-- SPDX-License-Identifier: PostgreSQL
-- A ledger with double entry, its handler, and a role for the puller that can do nothing else.
CREATE EXTENSION inbox;
CREATE ROLE ledger_owner;
CREATE ROLE ledger_puller LOGIN;
SELECT inbox_grant('ledger_puller', 'puller');

CREATE SCHEMA ledger AUTHORIZATION ledger_owner;
GRANT USAGE ON SCHEMA ledger TO ledger_puller;
SET ROLE ledger_owner;

CREATE TABLE ledger.account (id integer PRIMARY KEY, cents bigint NOT NULL DEFAULT 0);
INSERT INTO ledger.account (id) SELECT generate_series(1, 20);
-- No unique constraint: it could show a payment that was posted twice.
CREATE TABLE ledger.entry (
    payment text NOT NULL,
    account integer NOT NULL REFERENCES ledger.account,
    cents bigint NOT NULL,
    posted_at timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION ledger.post_payment(key text, payload jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledger, pg_temp
AS $$
DECLARE
    debtor integer := payload ->> 'from';
    creditor integer := payload ->> 'to';
    amount bigint := payload ->> 'cents';
BEGIN
    IF amount IS NULL OR amount <= 0 THEN
        RAISE EXCEPTION 'not an amount: %', payload -> 'cents' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- In one order, so that payments there and back do not deadlock.
    PERFORM FROM account WHERE id IN (debtor, creditor) ORDER BY id FOR UPDATE;
    INSERT INTO entry (payment, account, cents) VALUES (key, debtor, -amount), (key, creditor, amount);
    UPDATE account SET cents = account.cents + CASE id WHEN debtor THEN -amount ELSE amount END
        WHERE id IN (debtor, creditor);
END
$$;
REVOKE ALL ON FUNCTION ledger.post_payment FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledger.post_payment TO ledger_puller;
RESET ROLE;

-- One failure is enough here; five, with growing pauses, unless it is configured.
SELECT inbox_configure('payments', max_attempts => 1);

-- ---- the other side: what was ordered, and what is published of it --------------------------

CREATE SCHEMA producer;
CREATE TABLE producer.payment AS
    SELECT n, format('payment-%s', to_char(n, 'FM000')) AS key, 1 + n % 20 AS debtor,
        1 + (n + 1 + n / 20) % 20 AS creditor, 100 + n * 7 % 5000 AS cents
    FROM generate_series(0, 299) n;
UPDATE producer.payment SET creditor = 1 + creditor % 20 WHERE creditor = debtor;

CREATE VIEW producer.payload AS
    SELECT n, key, jsonb_build_object('from', debtor, 'to', creditor, 'cents', cents) AS payload
    FROM producer.payment;
-- Every third is published again, as by a publisher that got no answer. Payment 150 goes to an
-- account that does not exist.
CREATE VIEW producer.message AS
    SELECT (row_number() OVER (ORDER BY at, key))::integer AS n, payload::text AS data,
        jsonb_build_object('idempotency_key', key) AS attributes, NULL::text AS ordering_key
    FROM (SELECT n AS at, key, CASE n WHEN 150 THEN payload || '{"to": 77}' ELSE payload END AS payload
        FROM producer.payload
        UNION ALL
        SELECT n + 40, key, payload FROM producer.payload WHERE n % 3 = 1) AS m;
-- And 200 comes again with another amount.
CREATE VIEW producer.another_amount AS
    SELECT n, (payload || '{"cents": 1}')::text AS data, jsonb_build_object('idempotency_key', key) AS attributes,
        NULL::text AS ordering_key
    FROM producer.payload WHERE n = 200;
