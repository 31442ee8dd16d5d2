-- ---- DROP EXTENSION would forget every key -------------------------------------------------

-- Created by a call and not by the script, the view is not of the extension: it depends on it.
CREATE FUNCTION @extschema@.inbox_protect() RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	CREATE OR REPLACE VIEW @extschema@.inbox_protection AS
		SELECT 'DROP VIEW inbox_protection, or inbox_unprotect(), lets inbox be dropped' AS hint
		WHERE EXISTS (SELECT FROM @extschema@.inbox_claim);
	COMMENT ON VIEW @extschema@.inbox_protection IS
		'is in the way of DROP EXTENSION inbox and DROP TABLE, which would forget every key';
	REVOKE ALL ON @extschema@.inbox_protection FROM PUBLIC;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_protect() IS
	'makes a plain DROP EXTENSION or DROP TABLE fail instead of forgetting every key';

CREATE FUNCTION @extschema@.inbox_unprotect() RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF to_regclass('@extschema@.inbox_protection') IS NOT NULL THEN
		DROP VIEW @extschema@.inbox_protection;
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_unprotect() IS 'the end of inbox_protect()';

