-- SPDX-License-Identifier: PostgreSQL
-- The ledger against what was ordered: a line each, with whether it adds up (NULL: a fact only).
-- :left is what is still unacknowledged on the subscription, :limit what the dead letters have to be
-- fewer than.
WITH posted AS (
    SELECT payment AS key, count(*) AS postings,
        min(account) FILTER (WHERE side = 'debit') AS debtor,
        min(account) FILTER (WHERE side = 'credit') AS creditor,
        sum(amount) FILTER (WHERE side = 'debit') AS debit,
        sum(amount) FILTER (WHERE side = 'credit') AS credit
    FROM ledger.posting WHERE payment NOT LIKE 'opening %' GROUP BY payment
), dead AS (
    SELECT key FROM inbox_failure WHERE status = 'dead'
), compared AS (
    SELECT p.key AS ordered, b.key AS posted, d.key AS dead, b.postings, p.amount, p.mistake,
        b.postings = 2 AND b.debtor = p.debtor AND b.creditor = p.creditor
            AND b.debit = p.amount AND b.credit = p.amount AS correct
    FROM producer.payment p FULL JOIN posted b USING (key) FULL JOIN dead d USING (key)
), payments AS (
    SELECT count(ordered) AS ordered, count(posted) AS posted, count(dead) AS dead,
        count(*) FILTER (WHERE correct) AS correct,
        count(*) FILTER (WHERE postings > 2) AS repeated,
        count(*) FILTER (WHERE ordered IS NULL) AS unknown,
        count(*) FILTER (WHERE posted IS NULL AND dead IS NULL) AS missing,
        count(*) FILTER (WHERE posted IS NOT NULL AND dead IS NOT NULL) AS in_both,
        count(*) FILTER (WHERE dead IS NOT NULL AND mistake IS NULL) AS healthy,
        sum(amount) FILTER (WHERE dead IS NULL) AS amount
    FROM compared
), messages AS (
    SELECT (SELECT count(*) FROM producer.message) AS sent,
        (SELECT count(DISTINCT message_id) FROM producer.receipt) AS receipts,
        (SELECT count(DISTINCT message_id) FROM producer.receipt
            JOIN producer.verdict USING (message_id)) AS answered,
        (SELECT count(*) FROM producer.verdict WHERE verdict = 'duplicate') AS duplicates
), books AS (
    SELECT sum(amount) FILTER (WHERE side = 'debit') AS debits,
        sum(amount) FILTER (WHERE side = 'credit') AS credits,
        sum(amount) FILTER (WHERE side = 'credit' AND payment NOT LIKE 'opening %') AS paid,
        (SELECT sum(balance) FROM ledger.account) AS balances,
        (SELECT count(*) FROM ledger.account a WHERE a.balance <> coalesce((SELECT
            sum(CASE p.side WHEN 'credit' THEN p.amount ELSE -p.amount END)
            FROM ledger.posting p WHERE p.account = a.id), 0)) AS wrong_balances
    FROM ledger.posting
), inbox AS (
    SELECT (SELECT count(*) FROM inbox_claim) AS keys,
        (SELECT count(*) FROM inbox_failure WHERE status = 'retrying') AS retrying
), lines (what, figure, money, ok) AS (
    SELECT l.* FROM payments p, messages m, books b, inbox i, LATERAL (VALUES
        ('Payments ordered', p.ordered, false, NULL::boolean),
        ('Messages published, each under an id of its own', m.receipts, false,
            m.receipts = m.sent),
        ('Messages with a verdict in the log of the puller', m.answered, false,
            m.answered = m.sent),
        ('Messages left on the subscription', :left, false, :left = 0),
        ('', NULL, NULL, NULL),
        ('Payments in the ledger', p.posted, false, p.posted = p.ordered - p.dead),
        ('  posted once, from and to the right account', p.correct, false, p.correct = p.posted),
        ('  posted more than once', p.repeated, false, p.repeated = 0),
        ('  never ordered', p.unknown, false, p.unknown = 0),
        ('Dead letters, kept with their reason', p.dead, false, p.dead < :limit),
        ('  of payments without a mistake', p.healthy, false, p.healthy = 0),
        ('  in the ledger as well', p.in_both, false, p.in_both = 0),
        ('Payments that are in neither', p.missing, false, p.missing = 0),
        ('Payments still to be tried again', i.retrying, false, i.retrying = 0),
        ('Keys remembered by inbox', i.keys, false, i.keys = p.ordered),
        ('', NULL, NULL, NULL),
        ('Duplicates dropped, by the verdicts of the puller', m.duplicates, false,
            m.duplicates >= m.sent - p.ordered),
        ('  payments published a second time', m.sent - p.ordered, false, NULL),
        ('  committed but not acknowledged when the puller was killed',
            m.duplicates - m.sent + p.ordered, false, NULL),
        ('', NULL, NULL, NULL),
        ('Paid, by the orders that are not dead letters', p.amount, true, NULL),
        ('Paid, by the ledger', b.paid, true, b.paid = p.amount),
        ('Debits, with the opening of the accounts', b.debits, true, NULL),
        ('Credits', b.credits, true, b.debits = b.credits),
        ('Sum of all balances', b.balances, true, b.balances = 0),
        ('Accounts whose balance is not the sum of its postings', b.wrong_balances, false,
            b.wrong_balances = 0)
    ) AS l(what, figure, money, ok)
)
SELECT what, CASE WHEN money THEN to_char(figure / 100.0, 'FM999,999,999,990.00')
        ELSE to_char(figure, 'FM999,999,990') END, ok
FROM lines;
