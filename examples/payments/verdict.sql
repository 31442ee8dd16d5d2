-- SPDX-License-Identifier: PostgreSQL
-- The two sides' books are compared; nothing here asks inbox what it thinks, but for the two messages
-- that a person had to look at.
WITH posted AS (
    SELECT payment AS key, min(account) FILTER (WHERE cents < 0) AS debtor,
        min(account) FILTER (WHERE cents > 0) AS creditor, sum(cents) FILTER (WHERE cents > 0) AS cents
    FROM ledger.entry GROUP BY payment
), expected AS (
    SELECT key, debtor, creditor, cents::numeric FROM producer.payment
)
SELECT (SELECT count(*) FROM ledger.entry) = 600, '300 payments have two entries each'
UNION ALL
SELECT NOT EXISTS (SELECT key FROM posted WHERE (key, debtor, creditor, cents) NOT IN (SELECT * FROM expected)),
    'each is between the accounts and of the amount that was ordered'
UNION ALL
SELECT (SELECT count(*) FROM posted) = 300, 'none is missing'
UNION ALL
SELECT NOT EXISTS (SELECT FROM ledger.account a WHERE a.cents
    <> (SELECT coalesce(sum(e.cents), 0) FROM ledger.entry e WHERE e.account = a.id)),
    'each balance is the sum of its entries'
UNION ALL
SELECT (SELECT sum(cents) FROM ledger.account) = 0, 'and all balances are nothing'
UNION ALL
SELECT (SELECT count(*) FROM inbox_failure WHERE status = 'resolved' AND key = 'payment-150') = 1,
    'the payment to nowhere was corrected'
UNION ALL
SELECT (SELECT count(*) FROM inbox_failure WHERE status = 'discarded' AND key = 'payment-200') = 1,
    'the second amount of a payment was refused, and ended by a person'
UNION ALL
SELECT (SELECT count(*) FROM inbox_failure WHERE status NOT IN ('resolved', 'discarded')) = 0,
    'nothing is left to do';
