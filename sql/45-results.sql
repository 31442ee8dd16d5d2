CREATE FUNCTION @extschema@.inbox_result(key text, source text DEFAULT 'default') RETURNS jsonb
	LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT r.result FROM @extschema@.inbox_claim_result r
		JOIN @extschema@.inbox_source s ON s.id = r.source_id
		WHERE s.name = inbox_result.source AND r.key = inbox_result.key;
END;
COMMENT ON FUNCTION @extschema@.inbox_result(text, text) IS
	'what the handler returned for this key, if it returns jsonb';

