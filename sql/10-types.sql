CREATE TYPE @extschema@.inbox_message AS (
	key text,
	payload bytea,
	attributes jsonb,
	ordering_key text,
	message_id text,
	publish_time timestamptz,
	delivery_attempt int,
	source text
);
COMMENT ON TYPE @extschema@.inbox_message IS
	'a message as it was delivered; never changed, because binary clients know its columns';
COMMENT ON COLUMN @extschema@.inbox_message.key IS
	'the producer''s idempotency key: 1 to 1024 bytes, compared byte by byte';
COMMENT ON COLUMN @extschema@.inbox_message.payload IS 'the data, byte for byte';
COMMENT ON COLUMN @extschema@.inbox_message.attributes IS 'attribute names and values';
COMMENT ON COLUMN @extschema@.inbox_message.ordering_key IS
	'messages with the same ordering key are applied in the order they were published';
COMMENT ON COLUMN @extschema@.inbox_message.message_id IS 'given by Pub/Sub at each publish';
COMMENT ON COLUMN @extschema@.inbox_message.publish_time IS 'when Pub/Sub took the message';
COMMENT ON COLUMN @extschema@.inbox_message.delivery_attempt IS
	'Pub/Sub''s own count, given where the subscription has a dead-letter policy';
COMMENT ON COLUMN @extschema@.inbox_message.source IS
	'the source of the call; handlers always see it filled in, callers may leave it NULL';

