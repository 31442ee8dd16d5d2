INSERT INTO @extschema@.inbox_managed (version) VALUES ('@stepped@') ON CONFLICT DO NOTHING;
SELECT pg_catalog.set_config('managed_inbox.version', '@stepped@', true);
