CREATE FUNCTION @extschema@.inbox_restore_point(source text,
	margin interval DEFAULT interval '10 minutes')
	RETURNS TABLE (moved boolean, served_since timestamptz, moved_before timestamptz,
		newest_claim timestamptz, newest_publish timestamptz, longest_way interval,
		oldest_waiting timestamptz, waiting bigint, purged_before timestamptz,
		seek_to timestamptz)
	LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	this @extschema@.inbox_source;
BEGIN
	SELECT s.* INTO this FROM @extschema@.inbox_source s
		WHERE s.name = inbox_restore_point.source;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	-- Once pullers are at work here, only what was claimed before they came was restored.
	IF this.cluster = @extschema@.inbox_cluster() THEN
		SELECT max(a.at) INTO served_since FROM @extschema@.inbox_audit a
			WHERE a.source_id = this.id AND a.act = 'moved';
		moved := served_since IS NOT NULL;
	ELSE
		moved := this.cluster IS NOT NULL;
	END IF;
	SELECT max(a.at) INTO moved_before FROM @extschema@.inbox_audit a
		WHERE a.source_id = this.id AND a.act = 'moved'
		AND a.at < coalesce(served_since, 'infinity');
	SELECT max(c.claimed_at) INTO newest_claim FROM @extschema@.inbox_claim c
		WHERE c.source_id = this.id AND c.claimed_at < coalesce(served_since, 'infinity');
	-- Messages do not come in the order of their publication. One that was claimed just after the
	-- point may have been published as long before as others that were claimed just before it.
	SELECT max(c.publish_time), max(c.claimed_at - c.publish_time)
		INTO newest_publish, longest_way
		FROM @extschema@.inbox_claim c
		WHERE c.source_id = this.id AND c.publish_time IS NOT NULL
		AND c.claimed_at <= newest_claim AND c.claimed_at > newest_claim - interval '1 day';
	SELECT min(f.publish_time), count(*) INTO oldest_waiting, waiting
		FROM @extschema@.inbox_failure f
		WHERE f.source_id = this.id AND f.status = 'retrying';
	purged_before := this.purged_before;
	-- The way is measured by two clocks, the database's and Pub/Sub's: their difference is part of it.
	IF newest_claim IS NOT NULL THEN
		seek_to := least(newest_claim - coalesce(longest_way, interval '0'), newest_publish,
			oldest_waiting) - margin;
	END IF;
	RETURN NEXT;
END
$$;
COMMENT ON FUNCTION @extschema@.inbox_restore_point(text, interval) IS
	'the time to seek the subscription of a source back to after a restore or a failover, and why';
