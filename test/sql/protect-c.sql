-- SPDX-License-Identifier: PostgreSQL
-- A plain DROP EXTENSION does not forget the keys.
CREATE SCHEMA box;
CREATE EXTENSION inbox SCHEMA box;
SELECT detail FROM box.inbox_check() WHERE name = 'protection';
SELECT box.inbox_protect(), box.inbox_protect();
SELECT detail FROM box.inbox_check() WHERE name = 'protection';
DROP EXTENSION inbox;
SELECT hint FROM box.inbox_protection;
SELECT box.inbox_accept('k');
SELECT hint FROM box.inbox_protection;
SELECT box.inbox_unprotect(), box.inbox_unprotect();
DROP EXTENSION inbox;
DROP SCHEMA box;
