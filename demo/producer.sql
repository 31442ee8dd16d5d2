-- SPDX-License-Identifier: PostgreSQL
-- The other side's books: what was ordered to be paid, and what Pub/Sub took and when.
CREATE SCHEMA producer;

CREATE TABLE producer.payment (
    n integer PRIMARY KEY,
    key text NOT NULL UNIQUE,
    debtor integer NOT NULL,
    creditor integer NOT NULL,
    amount bigint NOT NULL
);
INSERT INTO producer.payment
    SELECT n, format('payment-%s', to_char(n, 'FM00000')), debtor,
        1 + (debtor + floor(random() * 49)::integer) % 50, 1 + floor(random() * 50000)
    FROM (SELECT n, 1 + floor(random() * 50)::integer AS debtor
        FROM generate_series(1, :payments) n) AS p;

-- Every fifth is sent again: some at once, some much later, as publishers that get no answer do.
CREATE TABLE producer.message (n integer PRIMARY KEY, key text NOT NULL, payload jsonb NOT NULL);
INSERT INTO producer.message
    SELECT row_number() OVER (ORDER BY at), key,
        jsonb_build_object('from', debtor, 'to', creditor, 'cents', amount)
    FROM (SELECT *, n::float8 AS at FROM producer.payment
        UNION ALL
        SELECT *, n + 0.5 + floor(random() * 1000) FROM producer.payment WHERE n % 5 = 0) AS p;

-- What came of it: the ids that Pub/Sub gave, and the verdicts that the pullers read.
CREATE TABLE producer.receipt (message_id text NOT NULL, key text NOT NULL);
CREATE TABLE producer.log (line jsonb NOT NULL);
CREATE VIEW producer.verdict AS
    SELECT line ->> 'message_id' AS message_id, line ->> 'key' AS key, line ->> 'verdict' AS verdict
    FROM producer.log WHERE line ->> 'event' = 'message';
