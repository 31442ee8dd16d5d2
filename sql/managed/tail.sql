DO $inbox_block$
DECLARE
	schema text := current_setting('managed_inbox.schema');
	left_over regprocedure;
	stranger record;
BEGIN
	EXECUTE format('INSERT INTO %I.inbox_managed (version) VALUES (%L) ON CONFLICT DO NOTHING',
		schema, '@version@');
	-- What the extension had and this has not would still call its library.
	FOR left_over IN SELECT p.oid FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
		WHERE p.pronamespace = quote_ident(schema)::regnamespace AND p.proname = ANY ('{@own@}')
		AND l.lanname = 'c'
	LOOP
		EXECUTE format('DROP FUNCTION %s', left_over);
	END LOOP;
	-- A superuser may have run this: what is SECURITY DEFINER must not get more than the tables'
	-- owner, who in turn is to be able to update it.
	FOR stranger IN
		SELECT o.what, c.relowner::regrole AS owner
		FROM pg_class c, LATERAL (
			SELECT format('ROUTINE %s', p.oid::regprocedure) AS what, p.proowner AS owner
			FROM pg_proc p WHERE p.pronamespace = c.relnamespace AND p.proname = ANY ('{@own@}')
			UNION ALL
			SELECT format('%s %s', CASE t.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,
				t.oid::regclass), t.relowner
			FROM pg_class t WHERE t.relnamespace = c.relnamespace AND t.relname = ANY ('{@own@}')
				AND t.relkind IN ('r', 'v')
		) o
		WHERE c.relname = 'inbox_claim' AND c.relnamespace = quote_ident(schema)::regnamespace
			AND o.owner <> c.relowner
	LOOP
		EXECUTE format('ALTER %s OWNER TO %s', stranger.what, stranger.owner);
	END LOOP;
END
$inbox_block$;
COMMIT;
\set ON_ERROR_ROLLBACK :inbox_on_error_rollback
\set ON_ERROR_STOP :inbox_on_error_stop
\set SHOW_CONTEXT :inbox_show_context
\set QUIET :inbox_quiet
