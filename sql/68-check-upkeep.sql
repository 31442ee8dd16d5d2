CREATE FUNCTION @extschema@.inbox_check_upkeep()
	RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	WITH own AS (
		-- Large payloads lie in a table of their own.
		SELECT c.oid, c.oid::regclass::text AS name,
			greatest(age(c.relfrozenxid), age(t.relfrozenxid)) AS xids,
			greatest(mxid_age(c.relminmxid), mxid_age(t.relminmxid)) AS mxids, c.reloptions,
			pg_stat_get_live_tuples(c.oid) AS live, pg_stat_get_dead_tuples(c.oid) AS dead
		FROM pg_class c LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
		WHERE c.oid IN ('@extschema@.inbox_source'::regclass,
			'@extschema@.inbox_claim'::regclass, '@extschema@.inbox_claim_result'::regclass,
			'@extschema@.inbox_failure'::regclass, '@extschema@.inbox_audit'::regclass)
	), facts AS (
		SELECT 1 AS n, 'autovacuum' AS name, 'dead rows stay, and old ones are not frozen; '
				'ALTER TABLE … RESET (autovacuum_enabled), autovacuum = on, track_counts = on' AS trouble,
			coalesce((SELECT string_agg(o.name, ', ') FROM own o
					WHERE o.reloptions && '{autovacuum_enabled=false,autovacuum_enabled=off}'),
				(SELECT string_agg(s.name || ' is off', ', ') FROM unnest('{autovacuum,track_counts}'::text[])
					AS s(name) WHERE NOT current_setting(s.name)::boolean)) AS found,
			'it is on' AS otherwise
		UNION ALL
		SELECT 2, 'bloat', 'dead rows have not been cleaned up; VACUUM, and look for old transactions '
				'and replication slots that hold it up',
			(SELECT string_agg(format('%s has %s dead and %s live rows', o.name, o.dead, o.live), ', ')
				FROM own o WHERE o.dead > 10000 + 0.4 * o.live),
			(SELECT format('%s dead and %s live rows in all', sum(o.dead), sum(o.live)) FROM own o)
		UNION ALL
		SELECT 3, 'frozen age', 'autovacuum is behind, and the server stops writing at two thousand '
				'million; VACUUM (FREEZE)',
			(SELECT string_agg(format('%s is %s transactions old', o.name, o.xids), ', ') FROM own o
				WHERE o.xids > 1.25 * current_setting('autovacuum_freeze_max_age')::bigint),
			(SELECT format('the oldest table is %s transactions old', max(o.xids)) FROM own o)
		UNION ALL
		SELECT 4, 'multixact age', 'autovacuum is behind, and the server stops writing at two thousand '
				'million; VACUUM (FREEZE)',
			(SELECT string_agg(format('%s is %s multixacts old', o.name, o.mxids), ', ') FROM own o
				WHERE o.mxids > 1.25 * current_setting('autovacuum_multixact_freeze_max_age')::bigint),
			(SELECT format('the oldest table is %s multixacts old', max(o.mxids)) FROM own o)
		UNION ALL
		SELECT 5, 'prepared', 'prepared transactions hold keys, and hold up VACUUM; COMMIT PREPARED or '
				'ROLLBACK PREPARED',
			(SELECT string_agg(DISTINCT format('one has locked %s', o.name), ', ')
				FROM pg_locks l JOIN own o ON o.oid = l.relation
				WHERE l.pid IS NULL AND l.database = (SELECT d.oid FROM pg_database d
					WHERE d.datname = current_database())), 'none has used inbox'
		UNION ALL
		SELECT 6, 'damage', 'damaged pages would be taken for empty ones, and their keys for new; '
				'ALTER SYSTEM RESET …',
			(SELECT string_agg(s.name || ' is on', ', ')
				FROM unnest('{zero_damaged_pages,ignore_checksum_failure}'::text[]) AS s(name)
				WHERE current_setting(s.name)::boolean), 'none is let pass'
	)
	SELECT f.name, f.found IS NULL, coalesce(f.found || ': ' || f.trouble, f.otherwise)
	FROM facts f ORDER BY f.n
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_upkeep() IS
	'the part of inbox_check about what has to be looked after';

CREATE FUNCTION @extschema@.inbox_check_replication()
	RETURNS TABLE (name text, ok boolean, detail text)
	LANGUAGE sql STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
	WITH wanted AS (
		SELECT c.oid, c.relname, c.relreplident FROM pg_class c
		WHERE c.oid IN ('@extschema@.inbox_source'::regclass, '@extschema@.inbox_claim'::regclass,
			'@extschema@.inbox_failure'::regclass)
	), published AS (
		SELECT p.oid, p.pubname, p.pubinsert, ARRAY(SELECT r.prrelid::oid FROM pg_publication_rel r
				WHERE r.prpubid = p.oid AND r.prqual IS NULL AND r.prattrs IS NULL) AS tables,
			ARRAY(SELECT n.pnnspid::oid FROM pg_publication_namespace n WHERE n.pnpubid = p.oid)
				AS schemas, p.puballtables
		FROM pg_publication p
	)
	SELECT 'publications', count(x.lacks) = 0, coalesce(string_agg(format('%s leaves out %s',
			quote_ident(x.pubname), x.lacks), '; ') || ': a subscriber that takes over would have the '
			'effects of messages without their keys; ALTER PUBLICATION … ADD TABLE …, unless no '
			'subscriber ever will', 'none publishes effects without keys')
	FROM (SELECT p.pubname, (SELECT string_agg(w.relname, ', ' ORDER BY w.relname)
			FROM wanted w WHERE NOT (p.pubinsert AND (p.puballtables OR w.oid = ANY (p.tables)
				OR '@extschema@'::regnamespace::oid = ANY (p.schemas)))) AS lacks
		FROM published p) AS x
	UNION ALL
	SELECT 'replica identity', count(*) FILTER (WHERE w.relreplident = 'n') = 0,
		coalesce(string_agg(w.relname, ', ') FILTER (WHERE w.relreplident = 'n')
			|| ': once published, nothing can be changed or deleted there; '
			'ALTER TABLE … REPLICA IDENTITY DEFAULT', 'all tables have one')
	FROM wanted w
	UNION ALL
	SELECT 'protection', true, CASE WHEN to_regclass('@extschema@.inbox_protection') IS NULL
		THEN 'a plain DROP would forget every key: inbox_protect() makes it fail'
		ELSE 'a plain DROP of the extension or its tables fails' END
$$;
COMMENT ON FUNCTION @extschema@.inbox_check_replication() IS
	'the part of inbox_check about who copies the tables, and who could drop them';

