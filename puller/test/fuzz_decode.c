/* SPDX-License-Identifier: PostgreSQL */
/*
 * The decoder under libFuzzer (make fuzz): whatever the bytes, no message is unsound, and what
 * was found sound JSON is sound to json-c too, with the same ack ids.
 */
#include <limits.h>
#include <stdint.h>

#include "decode.h"
#include "second_opinion.h"
#include "sound.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
compare_ack_ids(const char *body, size_t size, const struct message_list *list, int count)
{
	struct json_object *response = parse(body, size);
	struct json_object *received;
	const struct message *message = TAILQ_FIRST(list);

	if (!json_object_object_get_ex(response, "receivedMessages", &received) ||
		json_object_array_length(received) != (size_t) count)
	{
		fail("json-c finds another number of messages");
	}
	for (int i = 0; i < count; i++, message = TAILQ_NEXT(message, link))
	{
		struct json_object *element = json_object_array_get_idx(received, (size_t) i);
		struct json_object *ack_id = json_object_object_get(element, "ackId");

		if (strcmp(json_object_get_string(ack_id), message->ack_id) != 0)
		{
			fail("json-c finds another ack id");
		}
	}
	json_object_put(response);
}

static void
fuzz_response(const char *body, size_t size, const struct key_rules *rules)
{
	struct message_list list = TAILQ_HEAD_INITIALIZER(list);
	struct decode_error error;
	struct message *message;
	size_t skipped;
	bool sound = true;
	int count = decode_pull_response(body, size, rules, &list, &skipped, &error);

	if ((count < 0) != (error.text[0] != '\0') || (count <= 0 && !TAILQ_EMPTY(&list)))
	{
		fail("error");
	}
	TAILQ_FOREACH(message, &list, link)
	{
		sound = sound && message->defect == DEFECT_NONE;
		if (find_unsound(message) != NULL)
		{
			fail(find_unsound(message));
		}
	}
	if (sound && count > 0 && skipped == 0)
	{
		compare_ack_ids(body, size, &list, count);
	}
	while ((message = TAILQ_FIRST(&list)) != NULL)
	{
		TAILQ_REMOVE(&list, message, link);
		message_free(message);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const texts[] = {"attribute:k", "json:/a/0", "json:/id", "message-id"};
	struct key_rules rules = {.count = 0};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		if (key_rules_add(&rules, texts[i]) != NULL)
		{
			fail("rule");
		}
	}
	fuzz_response((const char *) bytes, size, &rules);
	key_rules_free(&rules);
	return 0;
}
