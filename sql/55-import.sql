CREATE FUNCTION @extschema@.inbox_import(keys text[], source text,
	claimed_at timestamptz[] DEFAULT NULL) RETURNS bigint
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	this_id integer := @extschema@.inbox_source_ensure(source);
	bad record;
	imported bigint;
BEGIN
	IF keys IS NULL OR array_ndims(keys) > 1 OR cardinality(claimed_at) <> cardinality(keys) THEN
		RAISE EXCEPTION 'keys must be a one-dimensional array, and claimed_at as long as that'
			USING ERRCODE = 'array_subscript_error',
				DETAIL = format('%s keys, %s times', coalesce(cardinality(keys)::text, 'NULL'),
					coalesce(cardinality(claimed_at)::text, 'no'));
	END IF;
	SELECT k.key, k.ordinal INTO bad FROM unnest(keys) WITH ORDINALITY AS k(key, ordinal)
		WHERE k.key IS NULL OR octet_length(k.key) NOT BETWEEN 1 AND 1024
		ORDER BY k.ordinal LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'key % of the array is %', bad.ordinal,
			coalesce(octet_length(bad.key) || ' bytes long', 'NULL')
			USING ERRCODE = 'IX002', HINT = 'A key is 1 to 1024 bytes. Nothing was imported.';
	END IF;
	-- Sorted as everyone sorts them, so that an import and a batch cannot deadlock.
	INSERT INTO @extschema@.inbox_claim (source_id, key, claimed_at)
		SELECT this_id, k.key, coalesce(k.claimed_at, now())
		FROM ROWS FROM (unnest(keys), unnest(claimed_at)) AS k(key, claimed_at)
		ORDER BY k.key COLLATE "C"
		ON CONFLICT (source_id, key) DO NOTHING;
	GET DIAGNOSTICS imported = ROW_COUNT;
	INSERT INTO @extschema@.inbox_audit (source_id, act, detail)
		VALUES (this_id, 'imported', jsonb_build_object('keys', imported));
	PERFORM @extschema@.inbox_durable(true);
	RETURN imported;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_import(text[], text, timestamptz[]) IS
	'takes over the keys of the consumer that inbox replaces; returns how many were new';

