-- SPDX-License-Identifier: PostgreSQL
-- ---- handlers ------------------------------------------------------------------------------

-- What a source is served with is compared as text.
CREATE FUNCTION @extschema@.inbox_managed_name(function oid) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE
	SET quote_all_identifiers = off
BEGIN ATOMIC
	SELECT i.identity FROM pg_catalog.pg_identify_object('pg_catalog.pg_proc'::regclass, function, 0) i;
END;
COMMENT ON FUNCTION @extschema@.inbox_managed_name(oid) IS 'the full signature of a function';

CREATE FUNCTION @extschema@.inbox_managed_refuse_handler(function oid, cause text) RETURNS void
	LANGUAGE plpgsql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF function IS NULL THEN
		RAISE EXCEPTION 'the handler is NULL' USING ERRCODE = 'IX003',
			HINT = 'Use inbox_accept to claim a key without a handler.';
	ELSIF cause IS NULL THEN
		RAISE EXCEPTION 'the handler, a function with OID %, does not exist', function
			USING ERRCODE = 'undefined_function',
				HINT = 'Name the handler by its name or signature.';
	ELSIF cause = 'strict' THEN
		RAISE EXCEPTION '% is strict and would not run for this message',
				@extschema@.inbox_managed_name(function)
			USING ERRCODE = 'IX003',
				DETAIL = 'The message has no payload, and a strict function is not called with a NULL '
					'argument: the message would be lost.',
				HINT = format('ALTER FUNCTION %s CALLED ON NULL INPUT;',
					@extschema@.inbox_managed_name(function));
	ELSIF cause = 'right' THEN
		RAISE EXCEPTION 'permission denied for handler %', @extschema@.inbox_managed_name(function)
			USING ERRCODE = 'insufficient_privilege',
				HINT = format('GRANT EXECUTE ON FUNCTION %s TO %I;',
					@extschema@.inbox_managed_name(function), current_user);
	END IF;
	RAISE EXCEPTION '% cannot be a handler', @extschema@.inbox_managed_name(function)
		USING ERRCODE = 'IX003', DETAIL = cause,
			HINT = 'A handler is a plain function that takes (payload), (key text, payload) or '
				'(inbox_message), where payload is jsonb, json, text or bytea.';
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_refuse_handler(oid, text) IS
	'says why a function cannot be a handler';

-- The handler is called by its name and with arguments of exactly its types. "call" calls it for
-- one message, "calls" for those of a batch that are applied, row by row: there is nothing in it to
-- sort or to gather rows first. Of a SQL function the planner may put the body in place of the
-- call, and functions that it calls would then not see what earlier messages of the batch did: so
-- "calls" is NULL unless its first word rules that out.
CREATE FUNCTION @extschema@.inbox_managed_handler(handler oid, OUT call text, OUT calls text,
	OUT takes_message boolean, OUT refuses_null boolean, OUT refusal text,
	OUT returns_jsonb boolean)
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	own oid := '@extschema@.inbox_message'::regtype;
	payloads oid[] := '{jsonb,json,text,bytea}'::regtype[];
	proc record;
	form integer;
	cause text;
	payload text;
BEGIN
	SELECT p.oid, p.prokind, p.proretset, p.pronargs, p.proargtypes, p.prorettype, p.proisstrict,
			p.proname, p.prosrc, n.nspname, l.lanname,
			has_function_privilege(p.oid, 'EXECUTE') AS allowed,
			EXISTS (SELECT FROM pg_proc o WHERE o.proname = p.proname
				AND o.pronamespace = p.pronamespace AND o.pronargs > p.pronargs
				AND o.pronargs - o.pronargdefaults <= p.pronargs
				AND o.proargtypes[0] = p.proargtypes[0]
				AND (p.pronargs = 1 OR o.proargtypes[1] = p.proargtypes[1])) AS ambiguous
		INTO proc FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
		JOIN pg_language l ON l.oid = p.prolang
		WHERE p.oid = handler;
	IF NOT FOUND THEN
		PERFORM @extschema@.inbox_managed_refuse_handler(handler, NULL);
	END IF;
	form := CASE
		WHEN proc.pronargs = 1 AND proc.proargtypes[0] = own THEN 3
		WHEN proc.pronargs = 1 AND proc.proargtypes[0] = ANY (payloads) THEN 1
		WHEN proc.pronargs = 2 AND proc.proargtypes[0] = 'text'::regtype
			AND proc.proargtypes[1] = ANY (payloads) THEN 2 END;
	cause := CASE
		WHEN proc.prokind = 'p' THEN 'It is a procedure, which could commit half of its work.'
		WHEN proc.prokind <> 'f' THEN 'It is an aggregate or a window function.'
		WHEN proc.proretset THEN 'It returns a set.'
		WHEN proc.nspname ~ '^pg_(toast_)?temp_'
			THEN 'It lives in a temporary schema, where anyone may put a function.'
		WHEN form IS NULL THEN 'Its arguments are other ones.'
		WHEN proc.ambiguous THEN 'A call of it could also mean a function by the same name whose '
			'further arguments have defaults; without the extension it is called by name.'
		WHEN NOT proc.allowed THEN 'right' END;
	IF cause IS NOT NULL THEN
		PERFORM @extschema@.inbox_managed_refuse_handler(handler, cause);
	END IF;
	payload := CASE proc.proargtypes[proc.pronargs - 1]::regtype WHEN 'bytea'::regtype THEN '%s'
			WHEN 'text'::regtype THEN 'pg_catalog.convert_from(%s, ''UTF8'')'
			ELSE 'pg_catalog.convert_from(%s, ''UTF8'')::pg_catalog.'
				|| proc.proargtypes[proc.pronargs - 1]::regtype END;
	call := format('%I.%I', proc.nspname, proc.proname);
	calls := CASE WHEN proc.lanname <> 'sql'
			OR coalesce(pg_get_function_sqlbody(proc.oid), proc.prosrc)
				~* '^\s*(begin atomic\s+)?(insert|update|delete|merge|with)\M'
		THEN format('SELECT %s(%s) FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) '
			'AS u(key, payload, attributes, ordering_key, message_id, publish_time, '
			'delivery_attempt, source, verdict) WHERE u.verdict OPERATOR(pg_catalog.=) ''applied''',
			call, CASE form WHEN 1 THEN format(payload, 'u.payload')
				WHEN 2 THEN 'u.key, ' || format(payload, 'u.payload')
				ELSE 'ROW(u.key, u.payload, u.attributes, u.ordering_key, u.message_id, '
					'u.publish_time, u.delivery_attempt, $3)::@extschema@.inbox_message' END) END;
	call := format('SELECT %s(%s)', call, CASE form WHEN 1 THEN format(payload, '$2')
		WHEN 2 THEN '$1, ' || format(payload, '$2') ELSE '$3' END);
	takes_message := form = 3;
	refuses_null := proc.proisstrict AND NOT takes_message;
	refusal := format('SELECT @extschema@.inbox_managed_refuse_handler(%s, ''strict'')', handler);
	returns_jsonb := proc.prorettype = 'jsonb'::regtype;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_handler(oid) IS
	'how to call a handler; an error if it cannot be one, or the caller may not call it';

CREATE FUNCTION @extschema@.inbox_managed_handler_oid(handler text) RETURNS oid
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE
AS $$
BEGIN
	IF pg_catalog.strpos(handler, '(') OPERATOR(pg_catalog.>) 0 THEN
		RETURN handler::pg_catalog.regprocedure;
	END IF;
	RETURN handler::pg_catalog.regproc;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_handler_oid(text) IS
	'finds a handler by its name or signature';

CREATE FUNCTION @extschema@.inbox_handler(handler text) RETURNS text
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE
AS $$
DECLARE
	function pg_catalog.oid := @extschema@.inbox_managed_handler_oid(handler);
BEGIN
	IF function IS NULL THEN
		PERFORM @extschema@.inbox_managed_refuse_handler(NULL, NULL);
	END IF;
	PERFORM @extschema@.inbox_managed_handler(function);
	RETURN @extschema@.inbox_managed_name(function);
END
$$;

-- Each message is a statement of its own, because the text of a statement is what names it in
-- errors. The cheapest one fetches the next row from a cursor whose rows are the calls: it is
-- parsed, but there is nothing to analyse and to plan.
CREATE FUNCTION @extschema@.inbox_managed_run_rows(messages @extschema@.inbox_message[],
	keys text[], verdicts text[], how record, source text) RETURNS jsonb[]
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	calls pg_catalog.refcursor;
	next_row pg_catalog.text;
	statement pg_catalog.text;
	result pg_catalog.jsonb;
	results pg_catalog.jsonb[];
BEGIN
	OPEN calls FOR EXECUTE how.calls USING messages, verdicts, source;
	next_row := 'FETCH ' OPERATOR(pg_catalog.||) pg_catalog.quote_ident(calls::pg_catalog.text);
	FOREACH statement IN ARRAY ARRAY(
		SELECT @extschema@.inbox_managed_mark(u.n::pg_catalog.int4, u.key) OPERATOR(pg_catalog.||)
			CASE WHEN how.refuses_null AND (messages[u.n]).payload IS NULL THEN how.refusal
				ELSE next_row END
		FROM ROWS FROM (pg_catalog.unnest(keys), pg_catalog.unnest(verdicts))
			WITH ORDINALITY AS u(key, verdict, n)
		WHERE u.verdict OPERATOR(pg_catalog.=) 'applied')
	LOOP
		IF how.returns_jsonb THEN
			EXECUTE statement INTO result;
			results := pg_catalog.array_append(results, result);
		ELSE
			EXECUTE statement;
		END IF;
	END LOOP;
	CLOSE calls;
	RETURN results;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_run_rows(@extschema@.inbox_message[], text[], text[],
	record, text) IS
	'runs the handler for those of a batch that are new; what it returned, if that is jsonb';

CREATE FUNCTION @extschema@.inbox_managed_run_each(messages @extschema@.inbox_message[],
	verdicts text[], how record, source text, numbered boolean) RETURNS jsonb[]
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	this record;
	result pg_catalog.jsonb;
	results pg_catalog.jsonb[];
BEGIN
	FOR this IN
		SELECT u.key, u.payload, CASE WHEN how.takes_message
				THEN ROW(u.key, u.payload, u.attributes, u.ordering_key, u.message_id,
					u.publish_time, u.delivery_attempt, inbox_managed_run_each.source
				)::@extschema@.inbox_message END AS message,
			@extschema@.inbox_managed_mark(CASE WHEN numbered THEN u.n::pg_catalog.int4 END, u.key)
				OPERATOR(pg_catalog.||) CASE WHEN how.refuses_null AND u.payload IS NULL
				THEN how.refusal ELSE how.call END AS statement
		FROM ROWS FROM (pg_catalog.unnest(messages), pg_catalog.unnest(verdicts))
			WITH ORDINALITY AS u(key, payload, attributes, ordering_key, message_id, publish_time,
				delivery_attempt, source, verdict, n)
		WHERE u.verdict OPERATOR(pg_catalog.=) 'applied' ORDER BY u.n
	LOOP
		IF how.returns_jsonb THEN
			EXECUTE this.statement INTO result USING this.key, this.payload, this.message;
			results := pg_catalog.array_append(results, result);
		ELSE
			EXECUTE this.statement USING this.key, this.payload, this.message;
		END IF;
	END LOOP;
	RETURN results;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_run_each(@extschema@.inbox_message[], text[], record,
	text, boolean) IS 'the same, each call analysed and planned by itself';

-- The result is asked for only where it is kept: what is not jsonb is thrown away.
CREATE FUNCTION @extschema@.inbox_managed_run(messages @extschema@.inbox_message[], keys text[],
	verdicts text[], how record, source text, numbered boolean) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	results pg_catalog.jsonb[];
BEGIN
	IF how.calls IS NULL OR pg_catalog.cardinality(messages) OPERATOR(pg_catalog.=) 1 THEN
		results := @extschema@.inbox_managed_run_each(messages, verdicts, how, source, numbered);
	ELSE
		results := @extschema@.inbox_managed_run_rows(messages, keys, verdicts, how, source);
	END IF;
	IF results IS NOT NULL THEN
		PERFORM @extschema@.inbox_managed_results(source, messages, verdicts, results);
	END IF;
	PERFORM @extschema@.inbox_managed_floor();
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_run(@extschema@.inbox_message[], text[], text[],
	record, text, boolean) IS 'the second part of a call: runs the handler, as the caller, for what is new';

-- ---- what is called ------------------------------------------------------------------------

CREATE FUNCTION @extschema@.inbox_managed_process(key text, payload bytea, hash bigint, handler oid,
	source text) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	messages @extschema@.inbox_message[] := ARRAY[
		ROW(key, payload, NULL, NULL, NULL, NULL, NULL, NULL)::@extschema@.inbox_message];
	how record;
	opened record;
BEGIN
	PERFORM @extschema@.inbox_managed_writable('inbox_process()');
	IF handler IS NULL THEN
		PERFORM @extschema@.inbox_managed_refuse_handler(NULL, NULL);
	END IF;
	how := @extschema@.inbox_managed_handler(handler);
	opened := @extschema@.inbox_managed_open(messages, hash, source, true, true);
	PERFORM @extschema@.inbox_managed_run(messages, opened.keys, opened.verdicts, how, source, false);
	PERFORM @extschema@.inbox_managed_close(messages, source, opened.verdicts);
	RETURN opened.verdicts[1] OPERATOR(pg_catalog.=) 'applied';
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_managed_process(text, bytea, bigint, oid, text) IS
	'inbox_process, whatever the type of the payload';

CREATE FUNCTION @extschema@.inbox_process(key text, payload jsonb, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	bytes pg_catalog.bytea := pg_catalog.convert_to(payload::pg_catalog.text, 'UTF8');
BEGIN
	RETURN @extschema@.inbox_managed_process(key, bytes,
		@extschema@.inbox_payload_hash(bytes) OPERATOR(pg_catalog.|) 1::bigint, handler, source);
END
$$;

CREATE FUNCTION @extschema@.inbox_process(key text, payload json, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	RETURN @extschema@.inbox_process(key, pg_catalog.convert_to(payload::pg_catalog.text, 'UTF8'),
		handler, source);
END
$$;

CREATE FUNCTION @extschema@.inbox_process(key text, payload text, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	RETURN @extschema@.inbox_process(key, pg_catalog.convert_to(payload, 'UTF8'), handler, source);
END
$$;

CREATE FUNCTION @extschema@.inbox_process(key text, payload bytea, handler regproc,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
BEGIN
	RETURN @extschema@.inbox_managed_process(key, payload, @extschema@.inbox_payload_hash(payload),
		handler, source);
END
$$;

CREATE FUNCTION @extschema@.inbox_accept(key text, payload bytea DEFAULT NULL,
	source text DEFAULT 'default') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
DECLARE
	messages @extschema@.inbox_message[] := ARRAY[
		ROW(key, payload, NULL, NULL, NULL, NULL, NULL, NULL)::@extschema@.inbox_message];
	opened record;
BEGIN
	PERFORM @extschema@.inbox_managed_writable('inbox_accept()');
	opened := @extschema@.inbox_managed_open(messages, @extschema@.inbox_payload_hash(payload),
		source, true, false);
	PERFORM @extschema@.inbox_managed_close(messages, source, opened.verdicts);
	PERFORM @extschema@.inbox_managed_floor();
	RETURN opened.verdicts[1] OPERATOR(pg_catalog.=) 'applied';
END
$$;

CREATE FUNCTION @extschema@.inbox_process_batch(messages @extschema@.inbox_message[],
	handler regproc, source text DEFAULT 'default')
	RETURNS TABLE (ordinal integer, key text, verdict text)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 200
AS $$
DECLARE
	how record;
	opened record;
BEGIN
	PERFORM @extschema@.inbox_managed_writable('inbox_process_batch()');
	IF messages IS NULL THEN
		RAISE EXCEPTION 'messages is NULL' USING ERRCODE = 'null_value_not_allowed';
	ELSIF pg_catalog.array_ndims(messages) OPERATOR(pg_catalog.>) 1 THEN
		RAISE EXCEPTION 'messages must be a one-dimensional array, this one has %',
			pg_catalog.array_ndims(messages) USING ERRCODE = 'array_subscript_error';
	ELSIF handler IS NULL THEN
		PERFORM @extschema@.inbox_managed_refuse_handler(NULL, NULL);
	ELSIF pg_catalog.array_lower(messages, 1) OPERATOR(pg_catalog.<>) 1 THEN
		-- A message's number is its place, whatever its subscript.
		messages := messages[:];
	END IF;
	how := @extschema@.inbox_managed_handler(handler);
	opened := @extschema@.inbox_managed_open(messages, NULL, source, false, true);
	PERFORM @extschema@.inbox_managed_run(messages, opened.keys, opened.verdicts, how, source, true);
	PERFORM @extschema@.inbox_managed_close(messages, source, opened.verdicts);
	RETURN QUERY SELECT v.n::pg_catalog.int4, v.of_key, v.given
		FROM ROWS FROM (pg_catalog.unnest(opened.keys), pg_catalog.unnest(opened.verdicts))
			WITH ORDINALITY AS v(of_key, given, n);
END
$$;
