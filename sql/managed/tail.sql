DO $inbox_block$
DECLARE
	schema text := current_setting('managed_inbox.schema');
	left_over regprocedure;
BEGIN
	EXECUTE format('INSERT INTO %I.inbox_managed (version) VALUES (%L) ON CONFLICT DO NOTHING',
		schema, '@version@');
	-- What the extension had and this has not would still call its library.
	FOR left_over IN SELECT p.oid FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
		WHERE p.pronamespace = quote_ident(schema)::regnamespace AND p.proname LIKE 'inbox\_%'
		AND l.lanname = 'c'
	LOOP
		EXECUTE format('DROP FUNCTION %s', left_over);
	END LOOP;
END
$inbox_block$;
COMMIT;
\set SHOW_CONTEXT :inbox_show_context
\set QUIET :inbox_quiet
