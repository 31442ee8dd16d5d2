-- SPDX-License-Identifier: PostgreSQL
-- Keys that only a superuser can make.
CREATE EXTENSION inbox;
CREATE FUNCTION noop(p bytea) RETURNS void LANGUAGE sql AS $$ $$;

-- A NUL byte, which no SQL can write: what follows it would be lost to every program in C.
CREATE CAST (bytea AS text) WITHOUT FUNCTION;
SELECT inbox_accept('\x6e756c0061'::bytea::text);
SELECT inbox_accept('\x6e756c0062'::bytea::text);
SELECT * FROM inbox_process_batch(ARRAY[('\x6e756c0062'::bytea::text, NULL, NULL, NULL, NULL, NULL, NULL, NULL)]::inbox_message[], 'noop');
DROP CAST (bytea AS text);

DROP EXTENSION inbox CASCADE;
DROP FUNCTION noop;
