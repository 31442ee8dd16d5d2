/* SPDX-License-Identifier: PostgreSQL */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "body.h"
#include "buf.h"
#include "memory.h"
#include "message.h"
#include "moment.h"
#include "problem.h"
#include "service.h"
#include "timer.h"

#define MAX_MESSAGE 10000000
#define MAX_ATTRIBUTES 100
#define MAX_ATTRIBUTE_NAME 256
#define MAX_ATTRIBUTE_VALUE 1024
#define MAX_ORDERING_KEY 1024

static bool
check_attribute(const char *name, struct json_object *value, struct message_parts *parts,
				struct problem *problem)
{
	size_t name_len = strlen(name);
	size_t value_len;

	if (!json_object_is_type(value, json_type_string))
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Invalid value at 'messages[].attributes' (TYPE_STRING): %.200s",
						   json_object_to_json_string(value));
	value_len = (size_t) json_object_get_string_len(value);
	if (name_len > MAX_ATTRIBUTE_NAME)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "An attribute's name has %zu bytes; the maximum is %d.", name_len,
						   MAX_ATTRIBUTE_NAME);
	if (value_len > MAX_ATTRIBUTE_VALUE)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "The value of attribute \"%.256s\" has %zu bytes; the maximum is %d.",
						   name, value_len, MAX_ATTRIBUTE_VALUE);
	/* Client libraries send the trace context as googclient_traceparent. */
	if (strncmp(name, "goog", 4) == 0 && strncmp(name, "googclient_", 11) != 0)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "The attribute name \"%.256s\" starts with \"goog\", which is reserved.",
						   name);
	parts->size += name_len + value_len;
	return true;
}

static bool
read_attributes(struct json_object *object, struct message_parts *parts, struct problem *problem)
{
	int count;

	if (!body_take_object(object, "attributes", &parts->attributes, problem))
		return false;
	if (parts->attributes == NULL)
		return true;
	count = json_object_object_length(parts->attributes);
	if (count > MAX_ATTRIBUTES)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "A message has %d attributes; the maximum is %d.", count,
						   MAX_ATTRIBUTES);
	if (count == 0)
		parts->attributes = NULL;
	else
	{
		json_object_object_foreach(parts->attributes, name, value)
		{
			if (!check_attribute(name, value, parts, problem))
				return false;
		}
	}
	return true;
}

static bool
read_data(struct json_object *object, struct message_parts *parts, char **owned,
		  struct problem *problem)
{
	struct json_object *data = body_member(object, "data");
	size_t bytes;

	if (data == NULL)
		return true;
	if (!json_object_is_type(data, json_type_string) ||
		!base64_normalise(json_object_get_string(data), (size_t) json_object_get_string_len(data),
						  owned, &parts->data_len, &bytes))
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Invalid value at 'messages[].data' (TYPE_BYTES): not base64: %.100s",
						   json_object_to_json_string(data));
	parts->data = *owned;
	parts->size += bytes;
	return true;
}

static bool
read_ordering_key(struct json_object *object, struct message_parts *parts, struct problem *problem)
{
	size_t len;

	if (!body_take_string(object, "orderingKey", &parts->ordering_key, problem))
		return false;
	if (parts->ordering_key == NULL)
		return true;
	len = strlen(parts->ordering_key);
	if (len > MAX_ORDERING_KEY)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "An ordering key has %zu bytes; the maximum is %d.", len,
						   MAX_ORDERING_KEY);
	if (len == 0)
		parts->ordering_key = NULL;
	parts->size += len;
	return true;
}

bool
message_read(struct json_object *object, struct message_parts *parts, char **owned,
			 struct problem *problem)
{
	static const char *const names[] = {"data",		   "attributes",  "messageId",
										"publishTime", "orderingKey", NULL};

	memset(parts, 0, sizeof(*parts));
	*owned = NULL;
	if (!json_object_is_type(object, json_type_object))
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Invalid value at 'messages' (an object): %.200s",
						   json_object_to_json_string(object));
	if (!body_known(object, names, problem) || !read_data(object, parts, owned, problem) ||
		!read_attributes(object, parts, problem) || !read_ordering_key(object, parts, problem))
		return false;
	if (parts->data_len == 0 && parts->attributes == NULL)
		return problem_set(
			problem, STATUS_INVALID_ARGUMENT,
			"One or more messages in the publish request is empty. Each message must "
			"contain either non-empty data, or at least one attribute.");
	if (parts->size > MAX_MESSAGE)
		return problem_set(
			problem, STATUS_INVALID_ARGUMENT,
			"The value for message_size is too large. You passed %zu in the request, "
			"but the maximum value is %d.",
			parts->size, MAX_MESSAGE);
	return true;
}

static void
render_attributes(struct json_object *attributes, struct buf *json)
{
	const char *separator = "";

	buf_text(json, ",\n        \"attributes\": {");
	json_object_object_foreach(attributes, name, value)
	{
		buf_text(json, separator);
		buf_text(json, "\n          ");
		buf_json(json, name, strlen(name));
		buf_text(json, ": ");
		buf_json(json, json_object_get_string(value), (size_t) json_object_get_string_len(value));
		separator = ",";
	}
	buf_text(json, "\n        }");
}

static void
render(struct message *message, const struct message_parts *parts)
{
	struct buf json = {0};
	char published[MOMENT_SIZE];

	moment_format(message->published, published);
	buf_text(&json, "{");
	if (parts->data_len > 0)
	{
		buf_text(&json, "\n        \"data\": \"");
		message->data_at = json.len;
		message->data_len = parts->data_len;
		buf_add(&json, parts->data, parts->data_len);
		buf_text(&json, "\",");
	}
	buf_printf(&json, "\n        \"messageId\": \"%" PRIu64 "\",\n        \"publishTime\": \"%s\"",
			   message->id, published);
	if (parts->attributes != NULL)
		render_attributes(parts->attributes, &json);
	if (parts->ordering_key != NULL)
	{
		buf_text(&json, ",\n        \"orderingKey\": ");
		buf_json(&json, parts->ordering_key, strlen(parts->ordering_key));
	}
	buf_text(&json, "\n      }");
	message->json = memory_resize(json.data, json.len + 1);
	message->json_len = json.len;
}

struct message *
message_new(struct service *service, const struct message_parts *parts)
{
	struct message *message = memory_get(sizeof(*message));
	int64_t now = moment_now();
	/* Tenths of a microsecond since 1970 have the 17 digits that ids of the real service have. */
	uint64_t id = (uint64_t) now / 100;

	if (id <= service->last_message)
		id = service->last_message + 1;
	service->last_message = id;
	message->references = 1;
	message->id = id;
	message->published = now / MILLISECOND * MILLISECOND;
	message->size = parts->size;
	if (parts->ordering_key != NULL)
		message->ordering_key = memory_copy(parts->ordering_key);
	message->attributes = json_object_get(parts->attributes);
	render(message, parts);
	return message;
}

struct message *
message_hold(struct message *message)
{
	message->references++;
	return message;
}

void
message_release(struct message *message)
{
	if (--message->references > 0)
		return;
	json_object_put(message->attributes);
	free(message->ordering_key);
	free(message->json);
	free(message);
}

const char *
message_attribute(const struct message *message, const char *name)
{
	struct json_object *value;

	if (message->attributes == NULL ||
		!json_object_object_get_ex(message->attributes, name, &value))
		return NULL;
	return json_object_get_string(value);
}
