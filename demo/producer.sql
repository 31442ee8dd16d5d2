-- SPDX-License-Identifier: PostgreSQL
-- The other side's books: what was ordered to be paid, and what Pub/Sub made of it.
CREATE SCHEMA producer;

-- A dozen orders go out with a mistake: an account that does not exist, or an amount as text.
CREATE TABLE producer.payment (
    n integer PRIMARY KEY,
    key text NOT NULL UNIQUE,
    debtor integer NOT NULL,
    creditor integer NOT NULL,
    amount bigint NOT NULL,
    mistake text CHECK (mistake IN ('account', 'amount'))
);
INSERT INTO producer.payment
    SELECT n, format('payment-%s', to_char(n, 'FM00000')), debtor,
        1 + (debtor + floor(random() * 49)::integer) % 50, 1 + floor(random() * 50000),
        CASE n % 832 WHEN 100 THEN 'account' WHEN 516 THEN 'amount' END
    FROM (SELECT n, 1 + floor(random() * 50)::integer AS debtor
        FROM generate_series(1, :payments) n) AS p;

CREATE VIEW producer.payload AS
    SELECT key, jsonb_build_object('from', debtor, 'to', creditor, 'cents', amount) AS correct,
        jsonb_build_object('from', debtor,
            'to', CASE mistake WHEN 'account' THEN 99 ELSE creditor END,
            'cents', CASE mistake
                WHEN 'amount' THEN to_jsonb(to_char(amount / 100.0, 'FM990.00'))
                ELSE to_jsonb(amount) END) AS sent
    FROM producer.payment;

-- Every fifth is sent again: some at once, some much later, as publishers that get no answer do.
CREATE TABLE producer.message (n integer PRIMARY KEY, key text NOT NULL, payload jsonb NOT NULL);
INSERT INTO producer.message
    SELECT row_number() OVER (ORDER BY at), key, sent
    FROM (SELECT n::float8 AS at, key FROM producer.payment
        UNION ALL
        SELECT n + 0.5 + floor(random() * 1000), key FROM producer.payment WHERE n % 5 = 0) AS p
    JOIN producer.payload USING (key);

-- The ids that Pub/Sub gave, and what the pullers have said to their logs.
CREATE TABLE producer.receipt (message_id text NOT NULL, key text NOT NULL);
CREATE TABLE producer.log (line jsonb NOT NULL);
CREATE VIEW producer.verdict AS
    SELECT line ->> 'message_id' AS message_id, line ->> 'key' AS key, line ->> 'verdict' AS verdict
    FROM producer.log WHERE line ->> 'event' IN ('message', 'dead_letter');
