/* SPDX-License-Identifier: PostgreSQL */
#include "decoded.h"

static void
test_everything_is_read(void **state)
{
	static const char body[] =
		"{\n  \"receivedMessages\": [\n    {\n      \"ackId\": \"UAYWLF1GSFE3GQhoUQ5P\\n+/=\",\n"
		"      \"message\": {\n        \"data\": \"eyJpZCI6MX0=\",\n"
		"        \"attributes\": {\n          \"k\": \"order-1\", \"e\": \"\", \"\": \"\xc3\xa9\"\n"
		"        },\n        \"messageId\": \"1022\",\n"
		"        \"publishTime\": \"2026-11-30T07:50:22.724Z\",\n"
		"        \"orderingKey\": \"customer 7\"\n      },\n"
		"      \"deliveryAttempt\": 3\n    }\n  ]\n}\n";
	struct decoded decoded = decode(body, sizeof(body) - 1, "attribute:k");
	const struct message *message = decoded.first;

	(void) state;
	assert_int_equal(decoded.count, 1);
	assert_int_equal(decoded.skipped, 0);
	assert_string_equal(message->ack_id, "UAYWLF1GSFE3GQhoUQ5P\n+/=");
	assert_int_equal(message->data_size, 8);
	assert_memory_equal(message->data, "{\"id\":1}", 8);
	assert_string_equal(message->attributes, "{\n          \"k\": \"order-1\", \"e\": \"\", \"\": "
											 "\"\xc3\xa9\"\n        }");
	assert_string_equal(message->message_id, "1022");
	assert_true(message->publish_time == INT64_C(1796025022724000));
	assert_string_equal(message->ordering_key, "customer 7");
	assert_int_equal(message->delivery_attempt, 3);
	assert_string_equal(message->key, "order-1");
	assert_false(message->key_from_message_id);
	assert_int_equal(message->defect, DEFECT_NONE);
	assert_null(message->defect_detail);
	assert_null(message->envelope);
	free_decoded(&decoded);
}

static void
test_almost_nothing_is_enough(void **state)
{
	static const char body[] = "{\"receivedMessages\":[{\"ackId\":\"a\",\"message\":{"
							   "\"messageId\":\"1\"}}]}";
	struct decoded decoded = decode(body, sizeof(body) - 1, "message-id");
	const struct message *message = decoded.first;

	(void) state;
	assert_int_equal(decoded.count, 1);
	assert_null(message->data);
	assert_int_equal(message->data_size, 0);
	assert_null(message->attributes);
	assert_null(message->ordering_key);
	assert_true(message->publish_time == INT64_MIN);
	assert_int_equal(message->delivery_attempt, 0);
	assert_string_equal(message->key, "mid:1");
	assert_true(message->key_from_message_id);
	assert_int_equal(message->defect, DEFECT_NONE);
	free_decoded(&decoded);
}

static void
test_null_and_empty_are_absent(void **state)
{
	static const char *const members[] = {
		"\"messageId\":\"1\",\"data\":null,\"attributes\":null,\"publishTime\":null,"
		"\"orderingKey\":null",
		"\"messageId\":\"1\",\"data\":\"\",\"orderingKey\":\"\"",
	};

	(void) state;
	for (size_t i = 0; i < COUNT(members); i++)
	{
		struct decoded decoded = decode_members(members[i]);

		assert_int_equal(decoded.first->defect, DEFECT_NO_KEY);
		assert_null(decoded.first->data);
		assert_null(decoded.first->attributes);
		assert_null(decoded.first->ordering_key);
		assert_true(decoded.first->publish_time == INT64_MIN);
		free_decoded(&decoded);
	}
}

static void
test_empty_bodies(void **state)
{
	static const char *const bodies[] = {"", "{}", "{\n}\n", "{\"receivedMessages\":[]}"};
	struct message_list list = TAILQ_HEAD_INITIALIZER(list);
	struct key_rules rules = {.count = 0};
	struct decode_error error;
	size_t skipped;

	(void) state;
	for (size_t i = 0; i < COUNT(bodies); i++)
	{
		struct decoded decoded = decode(bodies[i], strlen(bodies[i]), "message-id");

		assert_int_equal(decoded.count, 0);
		assert_int_equal(decoded.skipped, 0);
		assert_null(decoded.first);
	}
	assert_int_equal(decode_pull_response(NULL, 0, &rules, &list, &skipped, &error), 0);
}

/* Half a response, or no response at all: not one message, however sound its beginning. */
static void
test_garbage_gives_nothing(void **state)
{
	static const char *const bodies[] = {
		"<html>502 Bad Gateway</html>",
		"[" SOUND "]",
		"{\"receivedMessages\":[" SOUND,
		"{\"receivedMessages\":[" SOUND "]",
		"{\"receivedMessages\":[" SOUND "]}}",
		"{\"receivedMessages\":[" SOUND ",]}",
		"{\"receivedMessages\":[" SOUND "],\"receivedMessages\":[]}",
		"{\"receivedMessages\":[" SOUND ",{\"ackId\":\"b\",\"message\":{\"data\":\"Zm",
		"{\"receivedMessages\":[" SOUND ",{\"ackId\":'b'}]}",
		"{\"receivedMessages\":[" SOUND ",{\"ackId\":\"\\q\"}]}",
	};

	(void) state;
	for (size_t i = 0; i < COUNT(bodies); i++)
	{
		struct decoded decoded = decode(bodies[i], strlen(bodies[i]), "message-id");

		if (decoded.count != -1 || decoded.first != NULL)
		{
			fail_msg("taken: %s", bodies[i]);
		}
		assert_null(strstr(decoded.error.text, "good"));
	}
}

static void
test_cut_short_is_garbage(void **state)
{
	static const char body[] = "{\"receivedMessages\":[" SOUND "," SOUND "]}";

	(void) state;
	for (size_t size = 1; size < sizeof(body) - 1; size++)
	{
		struct decoded decoded = decode(body, size, "attribute:k");

		assert_int_equal(decoded.count, -1);
		assert_null(decoded.first);
	}
}

/* No ack id, no acknowledgement: the element is left to be delivered again. */
static void
test_without_ack_id_is_skipped(void **state)
{
	static const char *const elements[] = {
		"{\"message\":{\"messageId\":\"2\"}}",
		"{\"ackId\":null,\"message\":{\"messageId\":\"2\"}}",
		"{\"ackId\":\"\",\"message\":{\"messageId\":\"2\"}}",
		"{\"ackId\":5,\"message\":{\"messageId\":\"2\"}}",
		"{\"ackId\":[\"a\"],\"message\":{\"messageId\":\"2\"}}",
		"{\"ackId\":\"a\\u0000b\",\"message\":{\"messageId\":\"2\"}}",
		"{\"ackId\":\"\\ud800\",\"message\":{\"messageId\":\"2\"}}",
		"{\"ackId\":\"\xff\",\"message\":{\"messageId\":\"2\"}}",
		"{\"ackId\":\"a\",\"ackId\":\"a\",\"message\":{\"messageId\":\"2\"}}",
		"{\"ackId\":\"a\",\"ack\\u0049d\":\"b\",\"message\":{\"messageId\":\"2\"}}",
		"{\"message\":{\"ackId\":\"inner\",\"messageId\":\"2\"}}",
		"{\"ackId\\u0000\":\"a\",\"message\":{\"messageId\":\"2\"}}",
		"{}",
		"null",
		"[]",
		"\"ackId\"",
		"NaN",
		"1",
	};

	(void) state;
	for (size_t i = 0; i < COUNT(elements); i++)
	{
		struct decoded decoded = decode_beside_sound(elements[i]);

		if (decoded.count != 1 || decoded.skipped != 1)
		{
			fail_msg("not skipped: %s", elements[i]);
		}
		free_decoded(&decoded);
	}
}

static void
test_delivery_attempt(void **state)
{
	static const struct
	{
		const char *value;
		int attempt;
		enum message_defect defect;
	} attempts[] = {
		{"0", 0, DEFECT_NONE},
		{"1", 1, DEFECT_NONE},
		{"999999999", 999999999, DEFECT_NONE},
		{"\"5\"", 5, DEFECT_NONE},
		{"null", 0, DEFECT_NONE},
		{"-1", 0, DEFECT_UNDECODABLE},
		{"1.0", 0, DEFECT_UNDECODABLE},
		{"1e0", 0, DEFECT_UNDECODABLE},
		{"01", 0, DEFECT_UNDECODABLE},
		{"4294967297", 0, DEFECT_UNDECODABLE},
		{"\"\"", 0, DEFECT_UNDECODABLE},
		{"\"x\"", 0, DEFECT_UNDECODABLE},
		{"\"null\"", 0, DEFECT_UNDECODABLE},
		{"true", 0, DEFECT_UNDECODABLE},
		{"[1]", 0, DEFECT_UNDECODABLE},
		{"{}", 0, DEFECT_UNDECODABLE},
		{"NaN", 0, DEFECT_UNDECODABLE},
		{"\"1\\u0000\"", 0, DEFECT_UNSTORABLE},
	};

	(void) state;
	for (size_t i = 0; i < COUNT(attempts); i++)
	{
		char *element = memory_format("{\"ackId\":\"a\",\"deliveryAttempt\":%s,\"message\":{"
									  "\"messageId\":\"2\",\"attributes\":{\"k\":\"a\"}}}",
									  attempts[i].value);
		struct decoded decoded = decode_beside_sound(element);

		if (decoded.first->defect != attempts[i].defect)
		{
			fail_msg("deliveryAttempt %s: %s", attempts[i].value, decoded.first->defect_detail);
		}
		assert_int_equal(decoded.first->delivery_attempt, attempts[i].attempt);
		free(element);
		free_decoded(&decoded);
	}
}

static void
test_escaped_slash_in_data(void **state)
{
	struct decoded decoded =
		decode_members("\"messageId\":\"2\",\"attributes\":{\"k\":\"a\"},\"data\":\"\\/+\\/+\"");

	(void) state;
	assert_int_equal(decoded.first->defect, DEFECT_NONE);
	assert_int_equal(decoded.first->data_size, 3);
	assert_memory_equal(decoded.first->data, "\xff\xef\xfe", 3);
	free_decoded(&decoded);
}

static void
test_names_are_bounded(void **state)
{
	(void) state;
	for (int size = 1023; size <= 1025; size++)
	{
		char *members = memory_format("\"messageId\":\"%0*d\",\"orderingKey\":\"%0*d\","
									  "\"attributes\":{\"k\":\"%0*d\"}",
									  size, 0, size, 0, size, 0);
		struct decoded decoded = decode_members(members);

		assert_int_equal(decoded.first->defect, size > 1024 ? DEFECT_UNSTORABLE : DEFECT_NONE);
		assert_int_equal(decoded.first->ordering_key != NULL, size <= 1024);
		assert_int_equal(decoded.first->key != NULL, size <= 1024);
		free(members);
		free_decoded(&decoded);
	}
}

static void
test_size_counts_what_is_held(void **state)
{
	static const char with_data[] = "\"messageId\":\"2\",\"attributes\":{\"k\":\"a\"},\"data\":"
									"\"Zm9vYmFyIGJheiBxdXggZm9vYmFyIGJheiBxdXggZm9v\"";
	struct decoded small = decode_members("\"messageId\":\"2\",\"attributes\":{\"k\":\"a\"}");
	struct decoded large = decode_members(with_data);
	struct decoded defect = decode_members("\"messageId\":2");

	(void) state;
	assert_true(small.first->size >= sizeof(struct message) + 9 + 2 + 2 + 2);
	assert_true(large.first->size >= small.first->size + 33);
	assert_true(large.first->size <= small.first->size + 33 + 32);
	assert_true(defect.first->size >= sizeof(struct message) + defect.first->envelope_size +
										  strlen(defect.first->defect_detail));
	free_decoded(&small);
	free_decoded(&large);
	free_decoded(&defect);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_is_read),
		cmocka_unit_test(test_almost_nothing_is_enough),
		cmocka_unit_test(test_null_and_empty_are_absent),
		cmocka_unit_test(test_empty_bodies),
		cmocka_unit_test(test_garbage_gives_nothing),
		cmocka_unit_test(test_cut_short_is_garbage),
		cmocka_unit_test(test_without_ack_id_is_skipped),
		cmocka_unit_test(test_delivery_attempt),
		cmocka_unit_test(test_escaped_slash_in_data),
		cmocka_unit_test(test_names_are_bounded),
		cmocka_unit_test(test_size_counts_what_is_held),
	};

	return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
