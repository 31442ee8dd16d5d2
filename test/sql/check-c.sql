-- SPDX-License-Identifier: PostgreSQL
-- What can be wrong with an extension only.
CREATE EXTENSION inbox;
BEGIN;
UPDATE pg_extension SET extversion = '0.0.9' WHERE extname = 'inbox';
SELECT name, replace(detail, inbox_version(), 'VERSION') AS detail FROM inbox_check()
WHERE NOT ok AND name <> 'fsync';
ROLLBACK;

-- What only a superuser can do.
BEGIN;
SET LOCAL zero_damaged_pages = on;
SELECT name, detail FROM inbox_check() WHERE NOT ok AND name <> 'fsync';
ROLLBACK;
BEGIN;
UPDATE pg_class SET relfrozenxid = ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 300000000)
	& 4294967295)::text::xid WHERE oid = 'inbox_claim'::regclass;
SELECT name, regexp_replace(detail, '\d{6,}', 'N') AS detail FROM inbox_check() WHERE NOT ok AND name <> 'fsync';
ROLLBACK;
BEGIN;
UPDATE pg_class SET relminmxid = '3494967295' WHERE oid = 'inbox_failure'::regclass;
SELECT name, regexp_replace(detail, '\d{6,}', 'N') AS detail FROM inbox_check() WHERE NOT ok AND name <> 'fsync';
ROLLBACK;
-- Where large payloads lie, too.
BEGIN;
UPDATE pg_class SET relfrozenxid = ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 300000000)
	& 4294967295)::text::xid WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'inbox_failure'::regclass);
SELECT name, regexp_replace(detail, '\d{6,}', 'N') AS detail FROM inbox_check() WHERE NOT ok AND name <> 'fsync';
ROLLBACK;
BEGIN;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'inbox_claim_pkey'::regclass;
SELECT name, detail FROM inbox_check() WHERE NOT ok AND name <> 'fsync';
ROLLBACK;
BEGIN;
UPDATE pg_extension SET extconfig = extconfig[2:], extcondition = extcondition[2:] WHERE extname = 'inbox';
SELECT name, detail FROM inbox_check() WHERE NOT ok AND name <> 'fsync';
ROLLBACK;

-- What COMMIT does not wait for, it does not promise.
BEGIN;
SET LOCAL inbox.min_synchronous_commit = remote_apply;
SELECT ok, detail FROM inbox_check() WHERE name = 'min_synchronous_commit';
SET LOCAL inbox.min_synchronous_commit = remote_write;
SELECT ok, detail FROM inbox_check() WHERE name = 'min_synchronous_commit';
SET LOCAL inbox.min_synchronous_commit = local;
SELECT ok, detail FROM inbox_check() WHERE name = 'min_synchronous_commit';
ROLLBACK;

DROP EXTENSION inbox;
