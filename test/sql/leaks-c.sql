-- SPDX-License-Identifier: PostgreSQL
-- What a handler sets ends with it: the next message and the caller see none of it.
CREATE EXTENSION inbox;
CREATE ROLE inbox_other;
CREATE TABLE seen (key text, path text, role text, sync text, custom text);
GRANT ALL ON seen TO inbox_other;

CREATE FUNCTION leaks(k text, p text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO public.seen VALUES (k, current_setting('search_path'), current_user,
		current_setting('synchronous_commit'), current_setting('inbox_test.custom', true));
	EXECUTE p;
END
$$;
SELECT key, verdict FROM inbox_process_batch(ARRAY[
	('1', 'SET LOCAL search_path = pg_temp', NULL, NULL, NULL, NULL, NULL, NULL),
	('2', 'SET search_path = pg_temp', NULL, NULL, NULL, NULL, NULL, NULL),
	('3', 'SET LOCAL ROLE inbox_other', NULL, NULL, NULL, NULL, NULL, NULL),
	('4', 'SET ROLE inbox_other', NULL, NULL, NULL, NULL, NULL, NULL),
	('5', 'SET LOCAL synchronous_commit = off', NULL, NULL, NULL, NULL, NULL, NULL),
	('6', 'SET inbox_test.custom = 1', NULL, NULL, NULL, NULL, NULL, NULL),
	('7', 'SET LOCAL inbox_test.custom = 1', NULL, NULL, NULL, NULL, NULL, NULL),
	('8', 'SELECT 1', NULL, NULL, NULL, NULL, NULL, NULL)]::inbox_message[], 'leaks');
SELECT path, role = session_user AS own_role, sync, coalesce(custom, '') AS custom, count(*)
FROM seen GROUP BY 1, 2, 3, 4;
SELECT current_user = session_user AS own_role, current_setting('search_path') AS path,
	current_setting('synchronous_commit') AS sync;
BEGIN;
SELECT inbox_process('9', 'SET LOCAL ROLE inbox_other', 'leaks');
SELECT inbox_process('10', 'SET LOCAL search_path = pg_temp', 'leaks');
SELECT current_user = session_user AS own_role, current_setting('search_path') AS path;
COMMIT;

-- What the caller had set itself stays.
BEGIN;
SET LOCAL inbox_test.custom = 'mine';
SELECT inbox_process('11', 'SET LOCAL inbox_test.custom = theirs', 'leaks');
SELECT current_setting('inbox_test.custom');
COMMIT;

DROP EXTENSION inbox CASCADE;
DROP FUNCTION leaks;
DROP TABLE seen;
DROP ROLE inbox_other;
