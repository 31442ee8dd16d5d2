-- SPDX-License-Identifier: PostgreSQL
-- What is kept of a message can be erased, and it is not applied again because of that.
\set SHOW_CONTEXT never
CREATE EXTENSION inbox;
CREATE FUNCTION post(key text, payload text) RETURNS jsonb LANGUAGE sql AS
	$$ SELECT jsonb_build_object('name', payload) $$;
CREATE FUNCTION broken(key text, payload text) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN RAISE 'no % here', payload USING ERRCODE = '22023'; END $$;
SELECT inbox_process('anna', 'Anna'::text, 'post', 's');
SELECT handler_signature FROM inbox_serve('s', 'broken', NULL, take_over => true);
SELECT inbox_configure('s', max_attempts => 1) IS NOT NULL;
SELECT verdict FROM inbox_fail(('berta', 'Berta', '{"name": "Berta"}', NULL, 'm1', now(), NULL, NULL)::inbox_message,
	's', '23505', 'Berta is there', 'Berta', 'ask Berta', 'of Berta');

SELECT inbox_erase('anna', 's', '');
SELECT inbox_erase('anna', 'nowhere', 'asked to');
SELECT * FROM inbox_erase('anna', 's', 'asked to');
SELECT inbox_result('anna', 's');
SELECT inbox_process('anna', 'Anna'::text, 'broken', 's');

-- What may still be applied is not erased.
SELECT * FROM inbox_erase('berta', 's', 'asked to');
SELECT * FROM inbox_retry_all('s');
SELECT inbox_discard(id, 'a duplicate') FROM inbox_failure;
SELECT * FROM inbox_erase('berta', 's', 'asked to');
SELECT key, status, sqlstate, error, detail, hint, context, payload, attributes, settled_why FROM inbox_failure;
SELECT count(*) FROM inbox_failure f WHERE f::text ~ 'Berta';
SELECT count(*) FROM inbox_audit a WHERE a::text ~ 'Berta|Anna';
SELECT inbox_process('berta', 'Berta'::text, 'broken', 's');

-- What was applied under another key is of the same message.
SELECT verdict FROM inbox_process_batch(ARRAY[('anna', 'Another', NULL, NULL, 'm2', now(), NULL, NULL)::inbox_message],
	'post', 's');
SELECT handler_signature FROM inbox_serve('s', 'post', NULL, take_over => true);
SELECT inbox_retry(id, key => 'anna-2') FROM inbox_failure WHERE status = 'conflict';
SELECT * FROM inbox_erase('anna', 's', 'asked to');
SELECT inbox_result('anna-2', 's');

-- A key can go, too, when its message cannot come back any more.
\set VERBOSITY terse
SELECT * FROM inbox_erase('berta', 's', 'asked to', forget => true);
\echo :SQLSTATE
\set VERBOSITY default
UPDATE inbox_claim SET claimed_at = now() - interval '46 days', publish_time = NULL;
SELECT * FROM inbox_erase('berta', 's', 'asked to', forget => true);
SELECT key FROM inbox_claim;
SELECT count(*) FROM inbox_failure;
SELECT act, detail FROM inbox_audit ORDER BY id;
SELECT at IS NOT NULL, event FROM inbox_history('berta');
DROP EXTENSION inbox CASCADE;
DROP FUNCTION post, broken;
