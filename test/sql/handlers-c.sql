-- SPDX-License-Identifier: PostgreSQL
-- What a superuser can see of handlers.
CREATE EXTENSION inbox;

-- A handler is called once a message, and its calls are counted as those of any function.
SET track_functions = 'all';
CREATE FUNCTION counted(p jsonb) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$;
SELECT count(*) FROM inbox_process_batch((SELECT array_agg((i, '1', NULL, NULL, NULL, NULL, NULL, NULL)::inbox_message)
	FROM generate_series(1, 5) i), 'counted');
SELECT pg_stat_force_next_flush();
SELECT calls FROM pg_stat_user_functions WHERE funcname = 'counted';

DROP EXTENSION inbox;
DROP FUNCTION counted;
