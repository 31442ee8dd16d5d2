-- SPDX-License-Identifier: PostgreSQL
-- What can be wrong with an extension only.
CREATE EXTENSION inbox;
BEGIN;
UPDATE pg_extension SET extversion = '0.0.9' WHERE extname = 'inbox';
SELECT name, detail FROM inbox_check() WHERE NOT ok AND name <> 'fsync';
ROLLBACK;

DROP EXTENSION inbox;
