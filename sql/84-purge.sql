-- ---- forgetting old keys -------------------------------------------------------------------

-- No index: claims are written at every message, and an index on their time would be, too. Claims
-- of one time lie side by side, so the table is read by chunks, and what was seen in a chunk tells
-- when it has to be read again.

CREATE FUNCTION @extschema@.inbox_purge_others() RETURNS text[]
	LANGUAGE sql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(array_agg(l.virtualxid || ' of process ' || l.pid), '{}')
	FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
	WHERE l.locktype = 'virtualxid' AND l.virtualxid = l.virtualtransaction
		AND l.pid <> pg_backend_pid() AND a.usesysid IS NOT NULL
		AND a.datid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
$$;
COMMENT ON FUNCTION @extschema@.inbox_purge_others() IS
	'the transactions of other sessions in this database, those of autovacuum aside';

-- SKIP LOCKED: a source whose settings are being changed is purged the next time.
CREATE FUNCTION @extschema@.inbox_purge_watermark() RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	UPDATE @extschema@.inbox_source s SET purged_before = now() - s.dedup_window
	WHERE s.id IN (SELECT l.id FROM @extschema@.inbox_source l
		WHERE l.dedup_window IS NOT NULL
		AND (l.purged_before < now() - l.dedup_window) IS NOT FALSE FOR UPDATE SKIP LOCKED)
$$;
COMMENT ON FUNCTION @extschema@.inbox_purge_watermark() IS
	'sets purged_before of each source that forgets: older messages are expired from then on';

-- Where the time of the message is not known it may be a little later than its claim: clocks differ.
CREATE FUNCTION @extschema@.inbox_claim_age_from(publish_time timestamptz, claimed_at timestamptz)
	RETURNS timestamptz
	LANGUAGE sql STABLE PARALLEL SAFE
	RETURN greatest(claimed_at, coalesce(publish_time, claimed_at + interval '1 day'));
COMMENT ON FUNCTION @extschema@.inbox_claim_age_from(timestamptz, timestamptz) IS
	'the time from which the age of a claim counts';

CREATE FUNCTION @extschema@.inbox_purge_due(first tid, last tid) RETURNS timestamptz
	LANGUAGE sql STABLE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET enable_seqscan = off
	SET jit = off
AS $$
	SELECT least(now() + least(interval '10 days', (SELECT min(w.dedup_window)
			FROM @extschema@.inbox_source w)), min(
				@extschema@.inbox_claim_age_from(c.publish_time, c.claimed_at) + s.dedup_window))
	FROM @extschema@.inbox_claim c JOIN @extschema@.inbox_source s ON s.id = c.source_id
	WHERE c.ctid >= first AND c.ctid < last
$$;
COMMENT ON FUNCTION @extschema@.inbox_purge_due(tid, tid) IS
	'when the first claim of a part of the table is old enough; in ten days at the latest';

CREATE FUNCTION @extschema@.inbox_purge_rows(first tid, last tid) RETURNS bigint
	LANGUAGE sql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET enable_seqscan = off
	SET jit = off
AS $$
	WITH gone AS (
		DELETE FROM @extschema@.inbox_claim c USING @extschema@.inbox_source s
		WHERE c.ctid >= first AND c.ctid < last AND s.id = c.source_id
			AND s.dedup_window IS NOT NULL AND s.purged_before IS NOT NULL
			AND @extschema@.inbox_claim_age_from(c.publish_time, c.claimed_at)
				< least(s.purged_before, now() - s.dedup_window)
			-- Its message is not done with.
			AND NOT EXISTS (SELECT FROM @extschema@.inbox_failure f
				WHERE f.source_id = c.source_id AND f.key = c.key
				AND f.status IN ('retrying', 'dead', 'parked'))
			AND NOT EXISTS (SELECT FROM @extschema@.inbox_failure f
				WHERE f.source_id = c.source_id AND f.key = c.key
				AND f.status IN ('conflict', 'expired'))
		RETURNING c.source_id, c.key
	), results AS (
		DELETE FROM @extschema@.inbox_claim_result r USING gone g
		WHERE r.source_id = g.source_id AND r.key = g.key
	)
	SELECT count(*) FROM gone
$$;
COMMENT ON FUNCTION @extschema@.inbox_purge_rows(tid, tid) IS
	'forgets the old claims of a part of the table, and what their handlers returned';

CREATE FUNCTION @extschema@.inbox_purge_chunk(this_chunk bigint) RETURNS bigint
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	first tid := format('(%s,0)', this_chunk * 128);
	last tid := format('(%s,0)', (this_chunk + 1) * 128);
	next_due timestamptz := @extschema@.inbox_purge_due(first, last);
	forgotten bigint := 0;
BEGIN
	IF next_due <= now() THEN
		forgotten := @extschema@.inbox_purge_rows(first, last);
		next_due := @extschema@.inbox_purge_due(first, last);
	END IF;
	INSERT INTO @extschema@.inbox_purge_chunk AS p (chunk, due) VALUES (this_chunk, next_due)
		ON CONFLICT (chunk) DO UPDATE SET due = EXCLUDED.due;
	RETURN forgotten;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_purge_chunk(bigint) IS
	'forgets the old claims of a chunk, and notes when it has to be looked at again';

CREATE FUNCTION @extschema@.inbox_purge_settled(up_to integer) RETURNS bigint
	LANGUAGE sql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	WITH gone AS (
		DELETE FROM @extschema@.inbox_failure f WHERE f.id IN (
			SELECT o.id FROM @extschema@.inbox_failure o
				JOIN @extschema@.inbox_source s ON s.id = o.source_id
			WHERE o.status IN ('resolved', 'discarded') AND o.settled_at < now() - s.settled_window
				-- While the key is there, this row tells that its message was not applied.
				AND (o.status = 'resolved' OR NOT EXISTS (SELECT FROM @extschema@.inbox_claim c
					WHERE c.source_id = o.source_id AND c.key = coalesce(o.retry_key, o.key)))
			LIMIT up_to FOR UPDATE OF o SKIP LOCKED)
		RETURNING f.id
	), audit AS (
		DELETE FROM @extschema@.inbox_audit a USING gone g WHERE a.failure_id = g.id
	)
	SELECT count(*) FROM gone
$$;
COMMENT ON FUNCTION @extschema@.inbox_purge_settled(integer) IS
	'removes failures that were resolved or discarded long ago, and what was tried with them';

-- purged_before is committed before anything is deleted, and nothing is deleted while a transaction
-- is there that may have read it as it was: that one would look for a key, find it forgotten, and
-- apply its message again.
CREATE FUNCTION @extschema@.inbox_purge_begin(old @extschema@.inbox_purge_run, runner text)
	RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	file bigint := pg_relation_filenode('@extschema@.inbox_claim');
BEGIN
	PERFORM @extschema@.inbox_purge_watermark();
	-- What was noted of its parts is about other rows by now, or about other windows.
	IF old.heap <> file OR EXISTS (SELECT FROM @extschema@.inbox_source s
		WHERE s.configured_at > old.started_at)
	THEN
		DELETE FROM @extschema@.inbox_purge_chunk;
	END IF;
	DELETE FROM @extschema@.inbox_purge_run;
	INSERT INTO @extschema@.inbox_purge_run (runner, started_at, batch_at, heap, chunks)
		VALUES (inbox_purge_begin.runner, clock_timestamp(), clock_timestamp(), file,
			ceil(pg_relation_size('@extschema@.inbox_claim')
				/ (128 * current_setting('block_size')::numeric)));
	PERFORM @extschema@.inbox_durable(true);
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_purge_begin(@extschema@.inbox_purge_run, text) IS
	'the first batch of a purge';

CREATE FUNCTION @extschema@.inbox_purge_waits(run @extschema@.inbox_purge_run) RETURNS text[]
	LANGUAGE sql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN run.waits_for IS NULL THEN o.others
		ELSE ARRAY(SELECT unnest(run.waits_for) INTERSECT SELECT unnest(o.others)) END
	FROM @extschema@.inbox_purge_others() AS o(others)
$$;
COMMENT ON FUNCTION @extschema@.inbox_purge_waits(@extschema@.inbox_purge_run) IS
	'the transactions from before purged_before was set that have not ended';

CREATE FUNCTION @extschema@.inbox_purge_batch(runner text DEFAULT NULL, chunks integer DEFAULT 2)
	RETURNS TABLE (state text, forgotten bigint, settled bigint, progress real, detail text)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET lock_timeout = '1s'
AS $$
#variable_conflict use_column
DECLARE
	me text := coalesce(runner, 'process ' || pg_backend_pid());
	run @extschema@.inbox_purge_run;
	this_chunk bigint;
	looked integer := 0;
	removed bigint;
BEGIN
	state := 'busy';
	IF pg_try_advisory_xact_lock(hashtextextended('inbox_purge', '@extschema@.inbox_claim'::regclass::oid::bigint))
	THEN
		SELECT r.* INTO run FROM @extschema@.inbox_purge_run r;
		state := CASE WHEN run.id IS NOT NULL AND run.finished_at IS NULL AND run.runner <> me
				AND run.batch_at > clock_timestamp() - interval '10 seconds' THEN 'busy'
			WHEN NOT EXISTS (SELECT FROM @extschema@.inbox_source s
				WHERE s.dedup_window IS NOT NULL OR s.settled_window IS NOT NULL) THEN 'idle'
			WHEN run.id IS NULL OR run.finished_at IS NOT NULL
				OR run.heap <> pg_relation_filenode('@extschema@.inbox_claim') THEN 'started'
			ELSE 'working' END;
	END IF;
	IF state IN ('busy', 'idle') THEN
		detail := CASE state WHEN 'busy' THEN 'another purge is at it'
			ELSE 'no source has a dedup_window or a settled_window: see inbox_configure()' END;
		RETURN NEXT;
		RETURN;
	ELSIF state = 'started' THEN
		PERFORM @extschema@.inbox_purge_begin(run, me);
		SELECT r.* INTO run FROM @extschema@.inbox_purge_run r;
	ELSIF run.started_at >= now() THEN
		-- It was this transaction that set purged_before: nobody else can see it yet.
		state := 'waiting';
		detail := 'for the end of this transaction, which has set purged_before';
	ELSIF run.waits_for IS NULL OR run.waits_for <> '{}' THEN
		run.waits_for := @extschema@.inbox_purge_waits(run);
		IF run.waits_for <> '{}' THEN
			state := 'waiting';
			detail := 'for the end of ' || array_to_string(run.waits_for, ', ');
		END IF;
	END IF;
	IF state = 'working' THEN
		WHILE looked < greatest(chunks, 1) AND run.next_chunk < run.chunks LOOP
			-- A thousand at a time, since there may be very many that are not due.
			SELECT min(g.chunk) INTO this_chunk
				FROM generate_series(run.next_chunk, least(run.next_chunk + 999, run.chunks - 1)) AS g(chunk)
				WHERE NOT EXISTS (SELECT FROM @extschema@.inbox_purge_chunk c
					WHERE c.chunk = g.chunk AND c.due > now());
			IF this_chunk IS NULL THEN
				run.next_chunk := least(run.next_chunk + 1000, run.chunks);
				CONTINUE;
			END IF;
			run.forgotten := run.forgotten + @extschema@.inbox_purge_chunk(this_chunk);
			run.next_chunk := this_chunk + 1;
			looked := looked + 1;
		END LOOP;
		IF looked = 0 THEN
			removed := @extschema@.inbox_purge_settled(1000);
			run.settled := run.settled + removed;
			IF removed < 1000 THEN
				run.finished_at := clock_timestamp();
				state := 'done';
				detail := (SELECT 'next time: ' || string_agg(s.name, ', ' ORDER BY s.name)
					|| ', in use or changed when this one began' FROM @extschema@.inbox_source s
					WHERE s.dedup_window IS NOT NULL AND (s.purged_before
						> run.started_at - s.dedup_window - interval '1 minute') IS NOT TRUE);
			END IF;
		END IF;
	END IF;
	UPDATE @extschema@.inbox_purge_run r SET (runner, batch_at, finished_at, waits_for, next_chunk,
			forgotten, settled) = (me, clock_timestamp(), run.finished_at, run.waits_for,
			run.next_chunk, run.forgotten, run.settled);
	forgotten := run.forgotten;
	settled := run.settled;
	progress := CASE WHEN run.chunks > 0 THEN run.next_chunk / run.chunks::real ELSE 1 END;
	RETURN NEXT;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_purge_batch(text, integer) IS
	'one transaction''s worth of forgetting: idle, busy, started, waiting, working or done; to be '
	'called again, each time in a transaction of its own, until it is done, idle or busy';

CREATE OR REPLACE PROCEDURE @extschema@.inbox_purge(share double precision DEFAULT 0.1,
	patience interval DEFAULT '10 minutes', INOUT state text DEFAULT NULL,
	INOUT forgotten bigint DEFAULT NULL, INOUT settled bigint DEFAULT NULL,
	INOUT detail text DEFAULT NULL)
	LANGUAGE plpgsql
AS $$
DECLARE
	began timestamptz := pg_catalog.clock_timestamp();
	batch_began timestamptz;
	told timestamptz := began;
	batch record;
BEGIN
	IF (share OPERATOR(pg_catalog.>) 0 AND share OPERATOR(pg_catalog.<=) 1) IS NOT TRUE THEN
		RAISE EXCEPTION 'the share of the time that a purge takes is above 0 and 1 at most'
			USING ERRCODE = 'invalid_parameter_value', DETAIL = pg_catalog.format('It is %s.', share);
	END IF;
	LOOP
		batch_began := pg_catalog.clock_timestamp();
		SELECT b.* INTO STRICT batch FROM @extschema@.inbox_purge_batch() b;
		COMMIT;
		state := batch.state;
		forgotten := batch.forgotten;
		settled := batch.settled;
		detail := batch.detail;
		EXIT WHEN state OPERATOR(pg_catalog.=) ANY ('{idle,busy,done}'::pg_catalog.text[]);
		IF state OPERATOR(pg_catalog.=) 'waiting' THEN
			EXIT WHEN pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) began
				OPERATOR(pg_catalog.>) patience;
			PERFORM pg_catalog.pg_sleep(0.2);
		ELSE
			PERFORM pg_catalog.pg_sleep(extract(epoch FROM pg_catalog.clock_timestamp()
				OPERATOR(pg_catalog.-) batch_began)::pg_catalog.float8
				OPERATOR(pg_catalog.*) (1 OPERATOR(pg_catalog./) share OPERATOR(pg_catalog.-) 1));
		END IF;
		IF pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) told
			OPERATOR(pg_catalog.>) interval '10 seconds'
		THEN
			told := pg_catalog.clock_timestamp();
			RAISE INFO 'inbox_purge: % %%, % keys forgotten%',
				pg_catalog.round((batch.progress OPERATOR(pg_catalog.*) 100)::pg_catalog.numeric),
				batch.forgotten, CASE WHEN batch.detail IS NOT NULL
					THEN pg_catalog.concat(', waits ', batch.detail) END;
		END IF;
	END LOOP;
END
$$;
COMMENT ON PROCEDURE @extschema@.inbox_purge(double precision, interval, text, bigint, bigint, text) IS
	'forgets what is older than the windows of the sources, in many short transactions, using this '
	'share of the time';

