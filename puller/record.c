/* SPDX-License-Identifier: PostgreSQL */
#include "record.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>

/* The oids of built-in types never change. */
enum
{
	OID_BYTEA = 17,
	OID_INT4 = 23,
	OID_TEXT = 25,
	OID_TIMESTAMPTZ = 1184,
	OID_JSONB = 3802
};

#define FIELDS 8
/* PostgreSQL counts microseconds from 2000-01-01. */
#define EPOCH_DISTANCE UINT64_C(946684800000000)

static bool
append_int(struct buffer *out, int32_t value)
{
	uint32_t wire = htonl((uint32_t) value);

	return buffer_append(out, &wire, sizeof(wire));
}

static bool
append_field(struct buffer *out, int32_t type, const void *bytes, size_t size)
{
	if (bytes == NULL)
	{
		return append_int(out, type) && append_int(out, -1);
	}
	return append_int(out, type) && append_int(out, (int32_t) size) &&
		   buffer_append(out, bytes, size);
}

static bool
append_text(struct buffer *out, const char *text)
{
	return append_field(out, OID_TEXT, text, text != NULL ? strlen(text) : 0);
}

/* jsonb travels as its text behind a version byte. */
static bool
append_jsonb(struct buffer *out, const char *text)
{
	if (text == NULL)
	{
		return append_field(out, OID_JSONB, NULL, 0);
	}
	return append_int(out, OID_JSONB) && append_int(out, (int32_t) strlen(text) + 1) &&
		   buffer_append(out, "\1", 1) && buffer_append(out, text, strlen(text));
}

static bool
append_timestamp(struct buffer *out, int64_t microseconds)
{
	uint64_t wire = htobe64((uint64_t) microseconds - EPOCH_DISTANCE);

	return append_field(out, OID_TIMESTAMPTZ, microseconds != INT64_MIN ? &wire : NULL,
						sizeof(wire));
}

static bool
append_attempt(struct buffer *out, int attempt)
{
	uint32_t wire = htonl((uint32_t) attempt);

	return append_field(out, OID_INT4, attempt > 0 ? &wire : NULL, sizeof(wire));
}

static bool
append_payload(struct buffer *out, const struct message *message)
{
	if (message->envelope != NULL)
	{
		return append_field(out, OID_BYTEA, message->envelope, message->envelope_size);
	}
	return append_field(out, OID_BYTEA, message->data != NULL ? (const void *) message->data : "",
						message->data_size);
}

bool
record_append(struct buffer *out, const struct message *message)
{
	return append_int(out, FIELDS) && append_text(out, message->key) &&
		   append_payload(out, message) && append_jsonb(out, message->attributes) &&
		   append_text(out, message->ordering_key) && append_text(out, message->message_id) &&
		   append_timestamp(out, message->publish_time) &&
		   append_attempt(out, message->delivery_attempt) && append_text(out, NULL);
}

bool
record_append_array(struct buffer *out, unsigned element, struct message *const *messages,
					size_t count)
{
	/* dimensions, a NULL among them, element type, length, lower bound */
	if (!append_int(out, 1) || !append_int(out, 0) || !append_int(out, (int32_t) element) ||
		!append_int(out, (int32_t) count) || !append_int(out, 1))
	{
		return false;
	}
	for (size_t i = 0; i < count; i++)
	{
		size_t start = out->size;
		uint32_t size;

		if (!append_int(out, 0) || !record_append(out, messages[i]))
		{
			return false;
		}
		size = htonl((uint32_t) (out->size - start - sizeof(size)));
		memcpy(out->bytes + start, &size, sizeof(size));
	}
	return true;
}
