-- SPDX-License-Identifier: PostgreSQL
-- The ledger against what was ordered: a line each, with whether it adds up (NULL: a fact only).
-- :left is what is still unacknowledged on the subscription.
WITH posted AS (
    SELECT payment, count(*) AS postings,
        min(account) FILTER (WHERE side = 'debit') AS debtor,
        min(account) FILTER (WHERE side = 'credit') AS creditor,
        sum(amount) FILTER (WHERE side = 'debit') AS debit,
        sum(amount) FILTER (WHERE side = 'credit') AS credit
    FROM ledger.posting WHERE payment NOT LIKE 'opening %' GROUP BY payment
), compared AS (
    SELECT p.key IS NULL AS unordered, b.payment IS NULL AS missing, b.postings > 2 AS repeated,
        coalesce(b.postings = 2 AND b.debtor = p.debtor AND b.creditor = p.creditor
            AND b.debit = p.amount AND b.credit = p.amount, false) AS correct
    FROM producer.payment p FULL JOIN posted b ON b.payment = p.key
), ledger AS (
    SELECT count(*) FILTER (WHERE NOT missing) AS payments, count(*) FILTER (WHERE correct) AS correct,
        count(*) FILTER (WHERE missing) AS missing, count(*) FILTER (WHERE repeated) AS repeated,
        count(*) FILTER (WHERE unordered) AS unordered
    FROM compared
), ordered AS (
    SELECT count(*) AS payments, sum(amount) AS amount,
        (SELECT count(*) FROM producer.message) AS messages,
        (SELECT count(DISTINCT message_id) FROM producer.receipt) AS receipts
    FROM producer.payment
), verdicts AS (
    SELECT count(*) FILTER (WHERE verdict = 'duplicate') AS duplicates,
        (SELECT count(DISTINCT r.message_id) FROM producer.receipt r
            JOIN producer.verdict v USING (message_id)) AS answered
    FROM producer.verdict
), books AS (
    SELECT sum(amount) FILTER (WHERE side = 'debit') AS debits,
        sum(amount) FILTER (WHERE side = 'credit') AS credits,
        (SELECT sum(balance) FROM ledger.account) AS balances,
        (SELECT count(*) FROM ledger.account a WHERE a.balance <> coalesce((SELECT
            sum(CASE p.side WHEN 'credit' THEN p.amount ELSE -p.amount END)
            FROM ledger.posting p WHERE p.account = a.id), 0)) AS wrong_balances
    FROM ledger.posting
), claims AS (
    SELECT count(*) AS keys FROM inbox_claim
), lines (what, figure, money, ok) AS (
    SELECT l.* FROM ordered o, ledger b, verdicts v, books k, claims c, LATERAL (VALUES
        ('Payments ordered', o.payments, false, NULL::boolean),
        ('Messages published, each under an id of its own', o.receipts, false,
            o.receipts = o.messages),
        ('Messages with a verdict in the log of the puller', v.answered, false,
            v.answered = o.messages),
        ('Messages left on the subscription', :left, false, :left = 0),
        ('', NULL, NULL, NULL),
        ('Payments in the ledger', b.payments, false, b.payments = o.payments),
        ('  posted once, from and to the right account', b.correct, false, b.correct = o.payments),
        ('  missing', b.missing, false, b.missing = 0),
        ('  posted more than once', b.repeated, false, b.repeated = 0),
        ('  never ordered', b.unordered, false, b.unordered = 0),
        ('Keys remembered by inbox', c.keys, false, c.keys = o.payments),
        ('', NULL, NULL, NULL),
        ('Duplicates dropped, by the verdicts of the puller', v.duplicates, false,
            v.duplicates >= o.messages - o.payments),
        ('  payments published a second time', o.messages - o.payments, false, NULL),
        ('  applied but not acknowledged when the puller was killed', v.duplicates - o.messages + o.payments,
            false, NULL),
        ('', NULL, NULL, NULL),
        ('Debits, with the opening of the accounts', k.debits, true, NULL),
        ('Credits', k.credits, true, k.debits = k.credits),
        ('Sum of all balances', k.balances, true, k.balances = 0),
        ('Accounts whose balance is not the sum of its postings', k.wrong_balances, false,
            k.wrong_balances = 0),
        ('Paid, by the orders', o.amount, true, NULL),
        ('Paid, by the ledger', k.debits - 50 * 1000000, true, k.debits - 50 * 1000000 = o.amount)
    ) AS l(what, figure, money, ok)
)
SELECT what, CASE WHEN money THEN to_char(figure / 100.0, 'FM999,999,999,990.00')
        ELSE to_char(figure, 'FM999,999,990') END, ok
FROM lines;
