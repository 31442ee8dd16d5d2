-- SPDX-License-Identifier: PostgreSQL
-- What these functions are, whoever does it: the library, or the parts that end in -managed.
COMMENT ON FUNCTION @extschema@.inbox_process(text, jsonb, regproc, text) IS
	'true: the handler ran in this transaction; false: a duplicate, nothing ran';

COMMENT ON FUNCTION @extschema@.inbox_process(text, json, regproc, text) IS
	'true: the handler ran in this transaction; false: a duplicate, nothing ran';

COMMENT ON FUNCTION @extschema@.inbox_process(text, text, regproc, text) IS
	'true: the handler ran in this transaction; false: a duplicate, nothing ran';

COMMENT ON FUNCTION @extschema@.inbox_process(text, bytea, regproc, text) IS
	'true: the handler ran in this transaction; false: a duplicate, nothing ran';

COMMENT ON FUNCTION @extschema@.inbox_accept(text, bytea, text) IS
	'claims the key: true: the caller does the work in this transaction; false: a duplicate';

COMMENT ON FUNCTION @extschema@.inbox_process_batch(@extschema@.inbox_message[], regproc, text) IS
	'runs the handler for each message whose key is new, all or none; a verdict for each message';

COMMENT ON FUNCTION @extschema@.inbox_handler(text) IS
	'the full signature of a handler that the caller may use; an error if there is none';

COMMENT ON FUNCTION @extschema@.inbox_source_ensure(text) IS
	'the id of a source, which is created at its first use';

COMMENT ON FUNCTION @extschema@.inbox_claim_key(text, text, bytea, timestamptz) IS
	'claims a key: new, duplicate or conflict';

COMMENT ON FUNCTION @extschema@.inbox_durable(boolean) IS
	'this transaction''s COMMIT is to be durable; with proof: also what it has read';

COMMENT ON FUNCTION @extschema@.inbox_retry_one(bigint, bytea, text) IS
	'inbox_retry without the messages that wait for this one';

