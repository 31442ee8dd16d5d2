-- SPDX-License-Identifier: PostgreSQL
-- Takes inbox-managed.sql away again, as the tests want it: with the keys.
SELECT pg_catalog.set_config('managed_inbox.schema', :'schema', false) AS inbox_setting \gset
DO $$
DECLARE
	schema text := current_setting('managed_inbox.schema');
	functions text;
BEGIN
	SELECT string_agg(p.oid::regprocedure::text, ', ') INTO functions FROM pg_proc p
		WHERE p.pronamespace = quote_ident(schema)::regnamespace AND p.proname LIKE 'inbox\_%';
	EXECUTE format('DROP VIEW %I.inbox_dead_letters', schema);
	EXECUTE 'DROP ROUTINE ' || functions || ' CASCADE';
	EXECUTE format('DROP TABLE %1$I.inbox_source, %1$I.inbox_claim, %1$I.inbox_claim_result, '
		'%1$I.inbox_failure, %1$I.inbox_audit, %1$I.inbox_purge_run, %1$I.inbox_purge_chunk, '
		'%1$I.inbox_managed CASCADE', schema);
	EXECUTE format('DROP TYPE %1$I.inbox_message CASCADE', schema);
END
$$;
