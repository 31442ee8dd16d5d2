-- SPDX-License-Identifier: PostgreSQL
WITH done AS (
    SELECT order_id, string_agg(event, ' ' ORDER BY n) AS steps FROM shop.step GROUP BY order_id
), expected AS (
    SELECT order_id, string_agg(event, ' ' ORDER BY n) AS steps FROM producer.event GROUP BY order_id
)
SELECT (SELECT count(*) FROM done JOIN expected USING (order_id, steps)) = 40,
    'the steps of 40 orders were taken once each, in the order in which they were published'
UNION ALL
SELECT (SELECT count(*) FROM shop.orders WHERE state = 'shipped' AND grams IS NOT NULL) = 40,
    'all are shipped, with a weight'
UNION ALL
SELECT (SELECT count(*) = 40 AND count(DISTINCT key) = 40 FROM shop.mail_outbox), 'one mail for each is to be sent'
UNION ALL
SELECT (SELECT string_agg(key || ' ' || status, ', ' ORDER BY key) FROM inbox_failure)
    = 'order-13/packed resolved, order-13/shipped resolved, order-21/packed resolved, '
    'order-21/shipped resolved, order-21/wrapped resolved',
    'what had failed, and what had waited for it, was applied after all';
