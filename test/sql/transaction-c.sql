-- SPDX-License-Identifier: PostgreSQL
-- What only the library can refuse, or settle for all sessions.
CREATE EXTENSION inbox;

-- PREPARE would hold the key for everyone until somebody ends the transaction.
BEGIN;
SELECT inbox_accept('p1');
PREPARE TRANSACTION 'inbox test';
\echo :SQLSTATE
SELECT inbox_accept('p1');
BEGIN;
SELECT inbox_accept('p1');
PREPARE TRANSACTION 'inbox test';
BEGIN;
SELECT 1 AS "of no concern to us";
PREPARE TRANSACTION 'inbox test';
ROLLBACK PREPARED 'inbox test';

-- The lowest synchronous_commit is a superuser's setting.
SHOW inbox.min_synchronous_commit;
SET inbox.min_synchronous_commit = off;
SET inbox.min_synchronous_commit = remote_apply;
RESET inbox.min_synchronous_commit;
CREATE ROLE inbox_user;
SET ROLE inbox_user;
SET inbox.min_synchronous_commit = local;
RESET ROLE;
DROP ROLE inbox_user;
SET inbox.unknown = 1;

DROP EXTENSION inbox;
