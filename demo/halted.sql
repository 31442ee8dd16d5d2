-- SPDX-License-Identifier: PostgreSQL
-- Whether the source is halted, how many payments are to be tried again, and how many are dead.
SELECT s.halted_since IS NOT NULL, count(*) FILTER (WHERE f.status = 'retrying'),
    count(*) FILTER (WHERE f.status = 'dead')
FROM inbox_source s LEFT JOIN inbox_failure f ON f.source_id = s.id
WHERE s.name = :'source' GROUP BY s.id;
