-- SPDX-License-Identifier: PostgreSQL
CREATE TABLE @extschema@.inbox_managed (
	version text PRIMARY KEY,
	installed_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
COMMENT ON TABLE @extschema@.inbox_managed IS
	'the versions installed here, the newest of which counts: this inbox is no extension';
COMMENT ON COLUMN @extschema@.inbox_managed.version IS 'of the tables';
COMMENT ON COLUMN @extschema@.inbox_managed.installed_at IS 'when it was installed';
REVOKE ALL ON @extschema@.inbox_managed FROM PUBLIC;
