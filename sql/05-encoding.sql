-- A key is its bytes: in any other server encoding the same key may be stored as other bytes.
DO $$
BEGIN
	IF pg_catalog.current_setting('server_encoding') <> 'UTF8' THEN
		RAISE EXCEPTION 'inbox needs a database with the encoding UTF8, this one has %',
			pg_catalog.current_setting('server_encoding')
			USING ERRCODE = 'feature_not_supported',
				DETAIL = 'Keys are compared byte by byte, and messages arrive as UTF-8.',
				HINT = 'CREATE DATABASE … ENCODING ''UTF8'' TEMPLATE template0';
	END IF;
END
$$;

