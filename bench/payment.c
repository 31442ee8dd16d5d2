/* SPDX-License-Identifier: PostgreSQL */
#include "payment.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "message.h"
#include "record.h"

/* Milliseconds and microseconds since 1970 of payment 0; every one is a millisecond later. */
#define START_MS UINT64_C(1764500000000)
#define START_US (START_MS * 1000)
/* PostgreSQL counts microseconds from 2000-01-01. */
#define EPOCH_DISTANCE UINT64_C(946684800000000)

/* Counters begin behind any that are there before. */
#define COUNTER_START UINT64_C(1000000000)

#define KEY_SIZE 46

static const unsigned column_type[PAYMENT_COLUMNS] = {
	[PAYMENT_COLUMN_KEY] = 25, [PAYMENT_COLUMN_HASH] = 20, [PAYMENT_COLUMN_PUBLISH_TIME] = 1184};

/* The same number for the same input, without any order: the finalizer of SplitMix64. */
static uint64_t
scatter(uint64_t value)
{
	value += UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}

static void
write_key(char key[KEY_SIZE], enum payment_keys keys, uint64_t number)
{
	uint64_t one = scatter(number);
	uint64_t two = scatter(one);

	switch (keys)
	{
		case PAYMENT_ORDERED:
			snprintf(key, KEY_SIZE, "%013llu-%010llu", (unsigned long long) (START_MS + number),
					 (unsigned long long) (number % 10000000000));
			break;
		case PAYMENT_RANDOM:
			snprintf(key, KEY_SIZE, "payments-%08x-%04x-4%03x-%04x-%012llx", (unsigned) (one >> 32),
					 (unsigned) (one >> 16 & 0xffff), (unsigned) (one & 0xfff),
					 0x8000u | (unsigned) (two >> 48 & 0x3fff),
					 (unsigned long long) (two & 0xffffffffffff));
			break;
		case PAYMENT_UUID7:
			snprintf(key, KEY_SIZE, "%08llx-%04llx-7%03x-%04x-%012llx",
					 (unsigned long long) (START_MS + number) >> 16,
					 (unsigned long long) (START_MS + number) & 0xffff, (unsigned) (one & 0xfff),
					 0x8000u | (unsigned) (two >> 48 & 0x3fff),
					 (unsigned long long) (two & 0xffffffffffff));
			break;
		case PAYMENT_COUNTER:
			snprintf(key, KEY_SIZE, "%010llu", (unsigned long long) (COUNTER_START + number));
			break;
	}
}

/* A document of exactly the size wanted; to be freed. */
static char *
write_payload(const struct payment_kind *kind, uint64_t number)
{
	uint64_t chance = scatter(kind->changed ? ~number + 1 : ~number);
	char *start = memory_format("{\"account\": %llu, \"amount\": %llu, \"memo\": \"",
								(unsigned long long) (chance % kind->accounts + 1),
								(unsigned long long) ((chance >> 32) % 1000 + 1));
	size_t used = strlen(start);
	char *payload = memory_new(kind->payload + 1);

	if (used + 2 > kind->payload)
	{
		fprintf(stderr, "driver: a payload has at least %zu bytes\n", used + 2);
		exit(1);
	}
	memset(payload, 'x', kind->payload);
	memcpy(payload, start, used);
	memcpy(payload + kind->payload - 2, "\"}", 2);
	free(start);
	return payload;
}

static void
make_message(struct message *message, const struct payment_kind *kind, uint64_t number)
{
	char key[KEY_SIZE];

	write_key(key, kind->keys, number);
	*message = (struct message){
		.key = memory_copy_text(key),
		.message_id = memory_format("%llu", (unsigned long long) (number + 1000000000000)),
		.attributes = memory_format("{\"idempotency_key\":\"%s\"}", key),
		.data = (unsigned char *) write_payload(kind, number),
		.data_size = kind->payload,
		.publish_time = (int64_t) (START_US + number * 1000),
	};
}

static void
free_message(struct message *message)
{
	free(message->key);
	free(message->message_id);
	free(message->attributes);
	free(message->data);
}

/* The buffers of a benchmark have no limit that matters. */
static void
append(struct buffer *out, const void *bytes, size_t size)
{
	if (!buffer_append(out, bytes, size))
	{
		abort();
	}
}

void
payment_messages(struct buffer *out, unsigned element, const struct payment_kind *kind,
				 uint64_t first, size_t count)
{
	struct message *message = memory_new(count * sizeof(*message));
	struct message **list = memory_new(count * sizeof(struct message *));

	for (size_t i = 0; i < count; i++)
	{
		make_message(&message[i], kind, first + i);
		list[i] = &message[i];
	}
	if (!record_append_array(out, element, list, count))
	{
		abort();
	}
	for (size_t i = 0; i < count; i++)
	{
		free_message(&message[i]);
	}
	free(message);
	free(list);
}

static void
append_int(struct buffer *out, uint32_t value)
{
	uint32_t wire = htonl(value);

	append(out, &wire, sizeof(wire));
}

static void
append_long(struct buffer *out, uint64_t value)
{
	uint64_t wire = htobe64(value);

	append_int(out, sizeof(wire));
	append(out, &wire, sizeof(wire));
}

void
payment_column(struct buffer *out, int column, const struct payment_kind *kind, uint64_t first,
			   size_t count)
{
	/* dimensions, no NULL among them, element type, length, lower bound */
	uint32_t head[] = {1, 0, column_type[column], (uint32_t) count, 1};
	char key[KEY_SIZE];

	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
	{
		append_int(out, head[i]);
	}
	for (uint64_t number = first; number < first + count; number++)
	{
		if (column == PAYMENT_COLUMN_HASH)
		{
			append_long(out, scatter(number) & ~UINT64_C(1));
		}
		else if (column == PAYMENT_COLUMN_PUBLISH_TIME)
		{
			append_long(out, START_US + number * 1000 - EPOCH_DISTANCE);
		}
		else
		{
			write_key(key, kind->keys, number);
			append_int(out, (uint32_t) strlen(key));
			append(out, key, strlen(key));
		}
	}
}
