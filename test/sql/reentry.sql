-- SPDX-License-Identifier: PostgreSQL
-- A handler that calls inbox itself.
CREATE EXTENSION inbox;

-- A handler may come back to us: its own key is a duplicate then, another one is applied.
CREATE FUNCTION comes_back(k text, p text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
	IF p = 'inner' THEN
		RETURN '"inner"';
	END IF;
	RETURN jsonb_build_object('own', inbox_process(k, p, 'comes_back'),
		'other', inbox_process(k || '-inner', 'inner', 'comes_back'));
END
$$;
SELECT inbox_process('r1', 'outer', 'comes_back');
SELECT inbox_result('r1'), inbox_result('r1-inner');
CREATE FUNCTION any_json(p jsonb) RETURNS void LANGUAGE sql AS $$ $$;
-- An error inside has the outer message in its last line.
CREATE FUNCTION comes_back_failing(k text, p text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM inbox_process(k || '-inner', '{', 'any_json');
END
$$;
SELECT * FROM inbox_process_batch(ARRAY[('r2', 'x', NULL, NULL, NULL, NULL, NULL, NULL)]::inbox_message[],
	'comes_back_failing');

DROP EXTENSION inbox CASCADE;
DROP FUNCTION comes_back, comes_back_failing, any_json;
