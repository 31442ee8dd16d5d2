SELECT pg_catalog.set_config('managed_inbox.version', m.version, true)
	FROM @extschema@.inbox_managed m ORDER BY m.installed_at DESC LIMIT 1;
