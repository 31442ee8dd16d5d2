-- Rows of a table that belongs to an extension are left out of a dump unless it is named here,
-- and a restored database that has forgotten its keys applies every replayed message again.
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_source', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_source_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_claim', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_claim_result', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_failure', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_failure_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_audit', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.inbox_audit_id_seq', '');

