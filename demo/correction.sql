-- SPDX-License-Identifier: PostgreSQL
-- The statement that corrects the first dead letter, from what was ordered.
SELECT format($$SELECT inbox_retry(id, payload => %L) FROM inbox_failure
WHERE status = 'dead' AND key = %L$$, p.correct, p.key)
FROM producer.payload p JOIN inbox_failure f USING (key)
WHERE f.status = 'dead' ORDER BY f.id LIMIT 1;
