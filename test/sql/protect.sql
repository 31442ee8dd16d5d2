-- SPDX-License-Identifier: PostgreSQL
-- No table that a key or its message would be forgotten with goes by a plain DROP.
CREATE EXTENSION inbox;
SELECT inbox_accept('k');
SELECT inbox_protect();
\set VERBOSITY sqlstate
DROP TABLE inbox_claim;
DROP TABLE inbox_source;
DROP TABLE inbox_failure;
DROP TABLE inbox_claim_result;
DROP TABLE inbox_audit;
\set VERBOSITY default
SELECT inbox_accept('k');
SELECT detail FROM inbox_check() WHERE name = 'protection';
SELECT inbox_unprotect();
SELECT detail FROM inbox_check() WHERE name = 'protection';
DROP EXTENSION inbox;
