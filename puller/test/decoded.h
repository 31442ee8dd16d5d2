/* SPDX-License-Identifier: PostgreSQL */
/*
 * A decoded response for tests, chained by the messages' own links.
 */
#ifndef INBOX_TEST_DECODED_H
#define INBOX_TEST_DECODED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "memory.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SOUND "{\"ackId\":\"good\",\"message\":{\"messageId\":\"1\",\"attributes\":{\"k\":\"g\"}}}"

struct decoded
{
	struct message *first;
	int count;
	size_t skipped;
	struct decode_error error;
};

/*
 * Decodes from memory of exactly that size, so that a sanitizer sees a byte read behind it.
 * "rule_texts" are separated by spaces.
 */
static inline struct decoded
decode(const char *body, size_t size, const char *rule_texts)
{
	struct decoded decoded;
	struct message_list list = TAILQ_HEAD_INITIALIZER(list);
	struct key_rules rules = {.count = 0};
	char *exact = malloc(size > 0 ? size : 1);
	char *texts = memory_copy_text(rule_texts);

	assert_non_null(exact);
	memcpy(exact, body, size);
	for (char *text = strtok(texts, " "); text != NULL; text = strtok(NULL, " "))
	{
		assert_null(key_rules_add(&rules, text));
	}
	free(texts);
	decoded.count =
		decode_pull_response(exact, size, &rules, &list, &decoded.skipped, &decoded.error);
	decoded.first = TAILQ_FIRST(&list);
	assert_int_equal(decoded.count < 0, decoded.error.text[0] != '\0');
	key_rules_free(&rules);
	free(exact);
	return decoded;
}

static inline void
free_decoded(struct decoded *decoded)
{
	struct message *next;
	int count = 0;

	for (struct message *message = decoded->first; message != NULL; message = next)
	{
		next = TAILQ_NEXT(message, link);
		message_free(message);
		count++;
	}
	assert_int_equal(count, decoded->count > 0 ? decoded->count : 0);
}

/* One element before a sound one: whatever is wrong with it, the sound one is not touched. */
static inline struct decoded
decode_beside_sound(const char *element)
{
	char *body = memory_format("{\"receivedMessages\":[%s,%s]}", element, SOUND);
	struct decoded decoded = decode(body, strlen(body), "attribute:k");
	struct message *last = decoded.first;

	if (decoded.count < 1)
	{
		fail_msg("%d messages, error \"%s\": %s", decoded.count, decoded.error.text, element);
	}
	while (TAILQ_NEXT(last, link) != NULL)
	{
		last = TAILQ_NEXT(last, link);
	}
	assert_string_equal(last->ack_id, "good");
	assert_int_equal(last->defect, DEFECT_NONE);
	assert_string_equal(last->key, "g");
	free(body);
	return decoded;
}

/* A message of these members, with an ack id. */
static inline struct decoded
decode_members(const char *members)
{
	char *element = memory_format("{\"ackId\":\"a\",\"message\":{%s}}", members);
	struct decoded decoded = decode_beside_sound(element);

	free(element);
	assert_int_equal(decoded.count, 2);
	assert_int_equal(decoded.skipped, 0);
	return decoded;
}

#endif
