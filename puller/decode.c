/* SPDX-License-Identifier: PostgreSQL */
#include "decode.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "draft.h"
#include "memory.h"
#include "scan.h"
#include "timestamp.h"
#include "word.h"

/* The service's own limit of an ordering key; an index of PostgreSQL holds not much more. */
#define NAME_MAX_BYTES 1024

/* What malloc() adds to a piece of memory, about. */
#define PIECE_OVERHEAD 16

enum element_member
{
	ELEMENT_ACK_ID,
	ELEMENT_MESSAGE,
	ELEMENT_DELIVERY_ATTEMPT,
	ELEMENT_MEMBERS
};

enum message_member
{
	MEMBER_DATA,
	MEMBER_ATTRIBUTES,
	MEMBER_MESSAGE_ID,
	MEMBER_PUBLISH_TIME,
	MEMBER_ORDERING_KEY,
	MEMBERS
};

/* An identifier: a string of bounded length, NULL when absent, empty or lost. */
static enum draft_reading
read_name(struct draft *draft, const struct draft_member *member, char **name)
{
	enum draft_reading reading = draft_read(draft, member, '"');
	size_t size;

	if (reading != READING_FINE)
	{
		return reading;
	}
	*name = slice_text(&member->value, &size);
	if (size > 0 && size <= NAME_MAX_BYTES)
	{
		return READING_FINE;
	}
	free(*name);
	*name = NULL;
	if (size == 0)
	{
		return READING_ABSENT;
	}
	draft_set_defect(
		draft, DEFECT_UNSTORABLE,
		memory_format("%s of %zu bytes, at most %d", member->name, size, NAME_MAX_BYTES));
	return READING_LOST;
}

static bool
are_strings(const struct slice *object)
{
	struct slice_walk walk;
	struct slice name;
	struct slice value;

	slice_enter(&walk, object);
	while (slice_next_member(&walk, &name, &value))
	{
		if (slice_kind(&value) != '"')
		{
			return false;
		}
	}
	return true;
}

static void
read_attributes(struct draft *draft, const struct draft_member *member)
{
	enum draft_reading reading = draft_read(draft, member, '{');

	if (reading == READING_FINE && !are_strings(&member->value))
	{
		reading = draft_lose(draft, member, "holds a value that is not a string");
	}
	/* A flaw in one attribute does not hide the others from the rules of the key. */
	if (member->times == 1 && slice_kind(&member->value) == '{')
	{
		draft->fields.attributes = member->value;
	}
	else
	{
		draft->fields.attributes_lost = reading == READING_LOST;
	}
	if (reading == READING_FINE)
	{
		draft->message->attributes = memory_copy(member->value.start, member->value.length);
	}
}

/* Decodes the base64 of a string value, which may hold '/' as an escape. */
static bool
decode_data(const struct slice *value, unsigned char **data, size_t *data_size)
{
	size_t size = value->length - 2;
	const char *text = value->start + 1;
	char *unescaped = NULL;
	bool sound;

	if (memchr(text, '\\', size) != NULL)
	{
		unescaped = slice_text(value, &size);
		text = unescaped;
	}
	*data = memory_resize(NULL, BASE64_DECODED_MAX(size));
	sound = base64_decode(text, size, *data, data_size);
	if (!sound || *data_size == 0)
	{
		free(*data);
		*data = NULL;
		*data_size = 0;
	}
	free(unescaped);
	return sound;
}

static void
read_data(struct draft *draft, const struct draft_member *member)
{
	struct message *message = draft->message;
	enum draft_reading reading = draft_read(draft, member, '"');

	if (reading == READING_FINE &&
		!decode_data(&member->value, &message->data, &message->data_size))
	{
		reading = draft_lose(draft, member, "is not base64 in the standard alphabet with padding");
	}
	draft->fields.data = message->data;
	draft->fields.data_size = message->data_size;
	draft->fields.data_lost = reading == READING_LOST;
}

static void
read_publish_time(struct draft *draft, const struct draft_member *member)
{
	size_t size;
	char *text;

	if (draft_read(draft, member, '"') != READING_FINE)
	{
		return;
	}
	text = slice_text(&member->value, &size);
	if (!timestamp_parse(text, &draft->message->publish_time))
	{
		draft_lose(draft, member, "is not a time as 2026-01-31T12:00:00.123Z");
	}
	free(text);
}

/* A count, as a number or, as proto3 JSON also allows, as a string. */
static void
read_delivery_attempt(struct draft *draft, const struct draft_member *member)
{
	enum draft_reading reading = READING_FINE;
	struct slice digits = member->value;

	if (digits.start == NULL)
	{
		return;
	}
	if (slice_kind(&digits) == '"' || word_is(digits.start, digits.length, "null"))
	{
		reading = draft_read(draft, member, '"');
		digits.start++;
		digits.length -= 2;
	}
	if (reading != READING_FINE)
	{
		return;
	}
	if (word_is_integer(digits.start, digits.length, 9) && *digits.start != '-')
	{
		draft->message->delivery_attempt = (int) strtol(digits.start, NULL, 10);
		return;
	}
	draft_lose(draft, member, "is not a count");
}

/* A name for a message that has none. Ack ids change with every delivery, so they are left out. */
static char *
make_message_id(const struct slice *slice)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	unsigned long long first = 0;

	if (SHA256((const unsigned char *) slice->start, slice->length, hash) == NULL)
	{
		memory_exhausted();
	}
	for (int i = 0; i < 8; i++)
	{
		first = first << 8 | hash[i];
	}
	return memory_format("unknown-%016llx", first);
}

static void
read_message_id(struct draft *draft, const struct draft_member *member, const struct slice *hashed)
{
	struct message *message = draft->message;

	switch (read_name(draft, member, &message->message_id))
	{
		case READING_FINE:
			draft->fields.message_id = message->message_id;
			return;
		case READING_ABSENT:
			draft_lose(draft, member, "is missing");
			break;
		case READING_LOST:
			break;
	}
	message->message_id = make_message_id(hashed);
}

static void
read_message(struct draft *draft, const struct draft_member *element)
{
	struct draft_member member[MEMBERS] = {[MEMBER_DATA] = {.name = "data"},
										   [MEMBER_ATTRIBUTES] = {.name = "attributes"},
										   [MEMBER_MESSAGE_ID] = {.name = "messageId"},
										   [MEMBER_PUBLISH_TIME] = {.name = "publishTime"},
										   [MEMBER_ORDERING_KEY] = {.name = "orderingKey"}};
	const struct slice *value = &element->value;

	if (element->times != 1 || slice_kind(value) != '{')
	{
		draft_lose(draft, element, element->times > 1 ? "occurs twice" : "is not an object");
		/* Without a field to look in, no rule can give it a key. */
		draft->message->message_id = make_message_id(&draft->element->slice);
		return;
	}
	/* Without the ack id, which is another one when the message comes again. */
	draft->envelope = *value;
	draft_collect(value, member, MEMBERS);
	read_message_id(draft, &member[MEMBER_MESSAGE_ID], value);
	read_name(draft, &member[MEMBER_ORDERING_KEY], &draft->message->ordering_key);
	read_publish_time(draft, &member[MEMBER_PUBLISH_TIME]);
	read_attributes(draft, &member[MEMBER_ATTRIBUTES]);
	read_data(draft, &member[MEMBER_DATA]);
}

static void
read_key(struct draft *draft, const struct key_rules *keys)
{
	struct key key = key_find(keys, &draft->fields);

	draft->message->key = key.text;
	draft->message->key_from_message_id = key.from_message_id;
	switch (key.outcome)
	{
		case KEY_FOUND:
			break;
		case KEY_ABSENT:
			draft_set_defect(draft, DEFECT_NO_KEY,
							 memory_format("no rule of --key gives a key: %s", key.detail));
			break;
		case KEY_REFUSED:
			draft_set_defect(draft, DEFECT_UNSTORABLE, memory_copy_text(key.detail));
			break;
	}
	free(key.detail);
}

static size_t
text_size(const char *text)
{
	return text != NULL ? strlen(text) + 1 + PIECE_OVERHEAD : 0;
}

static size_t
held_size(const struct message *message)
{
	return sizeof(*message) + PIECE_OVERHEAD + text_size(message->ack_id) +
		   text_size(message->message_id) + text_size(message->ordering_key) +
		   text_size(message->key) + text_size(message->attributes) +
		   text_size(message->defect_detail) +
		   (message->data != NULL ? message->data_size + PIECE_OVERHEAD : 0) +
		   (message->envelope != NULL ? message->envelope_size + PIECE_OVERHEAD : 0);
}

/* The ack id, or NULL when there is none that is sure. */
static char *
read_ack_id(const struct scan_element *element, const struct draft_member *member)
{
	const struct slice *value = &member->value;
	size_t size;

	if (member->times != 1 || slice_kind(value) != '"' || value->length == 2 ||
		(element->flaws != 0 && scan_flaws(value) != 0))
	{
		return NULL;
	}
	return slice_text(value, &size);
}

/* NULL for an element that cannot be acknowledged. */
static struct message *
decode_element(const struct scan_element *element, const struct key_rules *keys)
{
	struct draft_member member[ELEMENT_MEMBERS] = {
		[ELEMENT_ACK_ID] = {.name = "ackId"},
		[ELEMENT_MESSAGE] = {.name = "message"},
		[ELEMENT_DELIVERY_ATTEMPT] = {.name = "deliveryAttempt"}};
	struct draft draft = {.element = element, .envelope = element->slice};
	char *ack_id;

	if (slice_kind(&element->slice) != '{')
	{
		return NULL;
	}
	draft_collect(&element->slice, member, ELEMENT_MEMBERS);
	ack_id = read_ack_id(element, &member[ELEMENT_ACK_ID]);
	if (ack_id == NULL)
	{
		return NULL;
	}
	draft.message = message_new();
	draft.message->ack_id = ack_id;
	read_message(&draft, &member[ELEMENT_MESSAGE]);
	read_delivery_attempt(&draft, &member[ELEMENT_DELIVERY_ATTEMPT]);
	if (element->flaws != 0)
	{
		/* It may stand in a member nobody reads; a broken envelope is still not to be trusted. */
		draft_set_flawed(&draft, element->flaws, "the envelope");
	}
	read_key(&draft, keys);
	draft.message->size = held_size(draft.message);
	return draft.message;
}

int
decode_pull_response(const char *body, size_t size, const struct key_rules *keys,
					 struct message_list *out, size_t *skipped, struct decode_error *error)
{
	struct scan_elements elements;
	struct scan_fault fault;
	int decoded = 0;

	*skipped = 0;
	error->text[0] = '\0';
	/* A buffer nothing was written to has no bytes to point to. */
	if (!scan_response(body != NULL ? body : "", size, &elements, &fault))
	{
		snprintf(error->text, sizeof(error->text), "byte %zu of %zu: %s", fault.offset, size,
				 fault.what);
		return -1;
	}
	for (size_t i = 0; i < elements.count; i++)
	{
		struct message *message = decode_element(&elements.element[i], keys);

		if (message == NULL)
		{
			(*skipped)++;
			continue;
		}
		TAILQ_INSERT_TAIL(out, message, link);
		decoded++;
	}
	scan_elements_free(&elements);
	return decoded;
}
