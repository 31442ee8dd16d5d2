/* SPDX-License-Identifier: PostgreSQL */
/*
 * What holds of every message that decoding gives, whatever the response was. json-c is the
 * second opinion on the attributes.
 */
#ifndef INBOX_TEST_SOUND_H
#define INBOX_TEST_SOUND_H

#include <stdbool.h>
#include <string.h>

#include "../../test/env/json_strict.h"
#include "key.h"
#include "message.h"
#include "utf8.h"

static inline bool
is_storable_text(const char *text, size_t max)
{
	return text != NULL && *text != '\0' && strlen(text) <= max && utf8_valid(text, strlen(text));
}

static inline bool
is_whole_string(struct json_object *value)
{
	return json_object_is_type(value, json_type_string) &&
		   strlen(json_object_get_string(value)) == (size_t) json_object_get_string_len(value);
}

static inline bool
are_storable_attributes(const char *text)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *object;
	bool storable;

	json_tokener_set_flags(tokener, JSON_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text, (int) strlen(text) + 1);
	storable = json_tokener_get_error(tokener) == json_tokener_success &&
			   json_object_is_type(object, json_type_object);
	if (storable)
	{
		json_object_object_foreach(object, name, value)
		{
			storable = storable && utf8_valid(name, strlen(name)) && is_whole_string(value);
		}
	}
	json_object_put(object);
	json_tokener_free(tokener);
	return storable;
}

/* What does not hold, or NULL. */
static inline const char *
find_unsound(const struct message *message)
{
	bool good = message->defect == DEFECT_NONE;

	return !is_storable_text(message->ack_id, SIZE_MAX)	  ? "ack_id"
		   : !is_storable_text(message->message_id, 1024) ? "message_id"
		   : message->ordering_key != NULL && !is_storable_text(message->ordering_key, 1024)
			   ? "ordering_key"
		   : message->key != NULL && !is_storable_text(message->key, KEY_MAX_BYTES) ? "key"
		   : good && message->key == NULL											? "no key"
		   : message->attributes != NULL && !are_storable_attributes(message->attributes)
			   ? "attributes"
		   : (message->data == NULL) != (message->data_size == 0)		  ? "data"
		   : good != (message->defect_detail == NULL)					  ? "defect_detail"
		   : !good && !is_storable_text(message->defect_detail, SIZE_MAX) ? "text of defect_detail"
		   : (good || message->defect == DEFECT_NO_KEY) != (message->envelope == NULL) ? "envelope"
		   : message->key_from_message_id && strncmp(message->key, "mid:", 4) != 0
			   ? "key_from_message_id"
		   : message->delivery_attempt < 0			? "delivery_attempt"
		   : message->size < sizeof(struct message) ? "size"
													: NULL;
}

#endif
