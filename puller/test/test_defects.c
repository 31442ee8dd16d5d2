/* SPDX-License-Identifier: PostgreSQL */
#include "decoded.h"

static void
expect_text(const char *found, const char *expected)
{
	if (expected == NULL)
	{
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_string_equal(found, expected);
}

struct defect_case
{
	const char *members;
	enum message_defect defect;
	const char *detail;
	const char *key;
};

static const struct defect_case defect_cases[] = {
	/* no key */
	{"\"messageId\":\"2\"", DEFECT_NO_KEY, "no rule of --key gives a key: attribute:k is absent",
	 NULL},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"\"}", DEFECT_NO_KEY, NULL, NULL},
	/* U+0000 and halves of surrogate pairs, in each field */
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\\u0000b\"}", DEFECT_UNSTORABLE,
	 "U+0000 in attributes, which PostgreSQL cannot store", NULL},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\",\"x\":\"\\u0000\"}", DEFECT_UNSTORABLE, NULL,
	 "a"},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\",\"\\u0000\":\"\"}", DEFECT_UNSTORABLE, NULL,
	 "a"},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"\\ud800\"}", DEFECT_UNSTORABLE,
	 "half of a surrogate pair in attributes, which PostgreSQL cannot store", NULL},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\",\"x\":\"\\udfff\"}", DEFECT_UNSTORABLE, NULL,
	 "a"},
	{"\"messageId\":\"2\\u0000\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNSTORABLE,
	 "U+0000 in messageId, which PostgreSQL cannot store", "a"},
	{"\"messageId\":\"2\",\"orderingKey\":\"\\u0000\",\"attributes\":{\"k\":\"a\"}",
	 DEFECT_UNSTORABLE, "U+0000 in orderingKey, which PostgreSQL cannot store", "a"},
	{"\"messageId\":\"2\",\"publishTime\":\"2026-11-30T07:50:22Z\\u0000\",\"attributes\":{\"k\":"
	 "\"a\"}",
	 DEFECT_UNSTORABLE, NULL, "a"},
	{"\"messageId\":\"2\",\"data\":\"\\u0000Zm8=\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNSTORABLE,
	 NULL, "a"},
	{"\"messageId\":\"2\",\"other\":\"\\u0000\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNSTORABLE,
	 "U+0000 in the envelope, which PostgreSQL cannot store", "a"},
	/* names that occur twice */
	{"\"messageId\":\"2\",\"messageId\":\"2\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE,
	 "messageId occurs twice", "a"},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\",\"k\":\"a\"}", DEFECT_UNDECODABLE,
	 "the same name twice in attributes", NULL},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\",\"\\u006b\":\"b\"}", DEFECT_UNDECODABLE, NULL,
	 NULL},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\",\"x\":\"\",\"x\":\"\"}", DEFECT_UNDECODABLE,
	 NULL, "a"},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\"},\"attributes\":{\"k\":\"b\"}",
	 DEFECT_UNDECODABLE, "attributes occurs twice", NULL},
	{"\"messageId\":\"2\",\"data\":\"Zm8=\",\"data\":\"Zm8=\",\"attributes\":{\"k\":\"a\"}",
	 DEFECT_UNDECODABLE, "data occurs twice", "a"},
	{"\"messageId\":\"2\",\"x\":{\"y\":1,\"y\":1},\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE,
	 "the same name twice in the envelope", "a"},
	/* not UTF-8, not JSON */
	{"\"messageId\":\"\xff\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE,
	 "bytes that are not UTF-8 in messageId", "a"},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"\xc0\xaf\"}", DEFECT_UNDECODABLE, NULL, NULL},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"\xed\xa0\x80\"}", DEFECT_UNDECODABLE, NULL, NULL},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\nb\"}", DEFECT_UNDECODABLE,
	 "a control character that is not escaped in attributes", NULL},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\"},\"other\":NaN", DEFECT_UNDECODABLE,
	 "a word or number that JSON does not know in the envelope", "a"},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\"},\"other\":-01", DEFECT_UNDECODABLE, NULL,
	 "a"},
	/* the wrong kind of value */
	{"\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE, "messageId is missing", "a"},
	{"\"messageId\":\"\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE, "messageId is missing",
	 "a"},
	{"\"messageId\":2,\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE,
	 "messageId is not a string", "a"},
	{"\"messageId\":\"2\",\"attributes\":[]", DEFECT_UNDECODABLE, "attributes is not an object",
	 NULL},
	{"\"messageId\":\"2\",\"attributes\":\"k\"", DEFECT_UNDECODABLE, NULL, NULL},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\",\"x\":1}", DEFECT_UNDECODABLE,
	 "attributes holds a value that is not a string", "a"},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":\"a\",\"x\":null}", DEFECT_UNDECODABLE, NULL, "a"},
	{"\"messageId\":\"2\",\"attributes\":{\"k\":{\"y\":\"z\"}}", DEFECT_UNDECODABLE, NULL, NULL},
	{"\"messageId\":\"2\",\"orderingKey\":7,\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE,
	 "orderingKey is not a string", "a"},
	{"\"messageId\":\"2\",\"data\":{},\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE,
	 "data is not a string", "a"},
	/* base64 */
	{"\"messageId\":\"2\",\"data\":\"Zg\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE,
	 "data is not base64 in the standard alphabet with padding", "a"},
	{"\"messageId\":\"2\",\"data\":\"Zm9v\\n\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE,
	 NULL, "a"},
	{"\"messageId\":\"2\",\"data\":\"Zm9vYmFyZ\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE,
	 NULL, "a"},
	{"\"messageId\":\"2\",\"data\":\"-_-_\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE, NULL,
	 "a"},
	{"\"messageId\":\"2\",\"data\":\"!!!!\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE, NULL,
	 "a"},
	{"\"messageId\":\"2\",\"data\":\"Zh==\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE, NULL,
	 "a"},
	/* times */
	{"\"messageId\":\"2\",\"publishTime\":\"yesterday\",\"attributes\":{\"k\":\"a\"}",
	 DEFECT_UNDECODABLE, "publishTime is not a time as 2026-01-31T12:00:00.123Z", "a"},
	{"\"messageId\":\"2\",\"publishTime\":\"\",\"attributes\":{\"k\":\"a\"}", DEFECT_UNDECODABLE,
	 NULL, "a"},
	{"\"messageId\":\"2\",\"publishTime\":\"2026-11-30T07:50:22+00:00\",\"attributes\":{\"k\":"
	 "\"a\"}",
	 DEFECT_UNDECODABLE, NULL, "a"},
	{"\"messageId\":\"2\",\"publishTime\":1796025022,\"attributes\":{\"k\":\"a\"}",
	 DEFECT_UNDECODABLE, "publishTime is not a string", "a"},
};

static void
test_defects(void **state)
{
	(void) state;
	for (size_t i = 0; i < COUNT(defect_cases); i++)
	{
		const struct defect_case *expected = &defect_cases[i];
		char *envelope = memory_format("{%s}", expected->members);
		struct decoded decoded = decode_members(expected->members);
		const struct message *message = decoded.first;

		if (message->defect != expected->defect || message->defect_detail == NULL ||
			(expected->detail != NULL && strcmp(message->defect_detail, expected->detail) != 0))
		{
			fail_msg("%s \"%s\": %s", message_defect_name(message->defect), message->defect_detail,
					 expected->members);
		}
		expect_text(message->key, expected->key);
		assert_string_equal(message->ack_id, "a");
		if (expected->defect == DEFECT_NO_KEY)
		{
			assert_null(message->envelope);
		}
		else
		{
			assert_int_equal(message->envelope_size, strlen(envelope));
			assert_memory_equal(message->envelope, envelope, strlen(envelope));
		}
		free(envelope);
		free_decoded(&decoded);
	}
}

/* What is sound beside a defect is kept for the dead letter, what is flawed is left out. */
static void
test_sound_fields_beside_a_defect(void **state)
{
	static const char members[] =
		"\"messageId\":\"2\",\"publishTime\":\"1970-01-01T00:00:01Z\",\"orderingKey\":\"o\","
		"\"data\":\"Zm8=\",\"attributes\":{\"k\":\"\\u0000\"}";
	static const char bad_data[] = "\"messageId\":\"2\",\"orderingKey\":\"\\ud800\","
								   "\"data\":\"Zm8\",\"attributes\":{\"k\":\"a\"}";
	struct decoded decoded = decode_members(members);

	(void) state;
	assert_string_equal(decoded.first->message_id, "2");
	assert_string_equal(decoded.first->ordering_key, "o");
	assert_true(decoded.first->publish_time == 1000000);
	assert_int_equal(decoded.first->data_size, 2);
	assert_memory_equal(decoded.first->data, "fo", 2);
	assert_null(decoded.first->attributes);
	assert_null(decoded.first->key);
	free_decoded(&decoded);

	decoded = decode_members(bad_data);
	assert_int_equal(decoded.first->defect, DEFECT_UNSTORABLE);
	assert_null(decoded.first->ordering_key);
	assert_null(decoded.first->data);
	assert_int_equal(decoded.first->data_size, 0);
	assert_string_equal(decoded.first->attributes, "{\"k\":\"a\"}");
	assert_string_equal(decoded.first->key, "a");
	free_decoded(&decoded);
}

static void
test_element_without_a_message(void **state)
{
	static const char *const elements[] = {
		"{\"ackId\":\"a\"}",
		"{\"ackId\":\"a\",\"message\":null}",
		"{\"ackId\":\"a\",\"message\":[]}",
		"{\"ackId\":\"a\",\"message\":\"x\"}",
		"{\"ackId\":\"a\",\"message\":{\"messageId\":\"2\"},\"message\":{\"messageId\":\"2\"}}",
	};

	(void) state;
	for (size_t i = 0; i < COUNT(elements); i++)
	{
		struct decoded decoded = decode_beside_sound(elements[i]);

		assert_int_equal(decoded.count, 2);
		assert_int_equal(decoded.first->defect, DEFECT_UNDECODABLE);
		assert_int_equal(strncmp(decoded.first->message_id, "unknown-", 8), 0);
		assert_null(decoded.first->key);
		free_decoded(&decoded);
	}
}

/* A message without an id has the same name each time it is delivered. */
static void
test_made_up_message_id(void **state)
{
	static const char message[] = "{\"attributes\":{\"k\":\"a\"}}";
	char *first = memory_format("{\"ackId\":\"a\",\"message\":%s}", message);
	char *again = memory_format("{\"deliveryAttempt\":2,\"message\":%s,\"ackId\":\"b\"}", message);
	struct decoded one = decode_beside_sound(first);
	struct decoded two = decode_beside_sound(again);
	struct decoded other = decode_members("\"attributes\":{\"k\":\"b\"}");

	(void) state;
	/* sha256sum of the text of "message" */
	assert_string_equal(one.first->message_id, "unknown-00246c5f8b1d1ced");
	assert_string_equal(two.first->message_id, one.first->message_id);
	assert_string_not_equal(other.first->message_id, one.first->message_id);
	free_decoded(&one);
	free_decoded(&two);
	free_decoded(&other);
	free(first);
	free(again);
}

/* A made-up id is not the service's: it is no key. */
static void
test_made_up_message_id_is_no_key(void **state)
{
	static const char body[] = "{\"receivedMessages\":[{\"ackId\":\"a\",\"message\":{}}]}";
	struct decoded decoded = decode(body, sizeof(body) - 1, "message-id");

	(void) state;
	assert_int_equal(decoded.count, 1);
	assert_int_equal(decoded.first->defect, DEFECT_UNDECODABLE);
	assert_null(decoded.first->key);
	free_decoded(&decoded);
}

/*
 * A field that cannot be read may hold the message's key. The rules behind it must not give it
 * another one: that would make a later message with this other key a duplicate.
 */
static void
test_lost_field_ends_the_search_for_the_key(void **state)
{
	static const struct
	{
		const char *rules;
		const char *members;
		const char *key;
	} cases[] = {
		{"json:/id message-id", "\"data\":\"eyJpZCI6MX0\"", NULL},
		{"json:/id message-id", "\"data\":\"eyJpZCI6MX0=\",\"data\":\"eyJpZCI6MX0=\"", NULL},
		{"json:/id message-id", "\"data\":[]", NULL},
		{"json:/id message-id", "\"data\":\"eyJpZCI6MX0=\",\"x\":NaN", "1"},
		{"json:/id message-id", "\"data\":null,\"x\":NaN", "mid:2"},
		{"attribute:k message-id", "\"attributes\":[]", NULL},
		{"attribute:k message-id", "\"attributes\":{},\"attributes\":{}", NULL},
		{"attribute:k message-id", "\"attributes\":{\"k\":\"\\u0000\"}", NULL},
		{"attribute:k message-id", "\"attributes\":{\"x\":\"\\u0000\"}", "mid:2"},
		{"attribute:k message-id", "\"attributes\":null,\"x\":NaN", "mid:2"},
	};

	(void) state;
	for (size_t i = 0; i < COUNT(cases); i++)
	{
		char *body = memory_format("{\"receivedMessages\":[{\"ackId\":\"a\",\"message\":{"
								   "\"messageId\":\"2\",%s}}]}",
								   cases[i].members);
		struct decoded decoded = decode(body, strlen(body), cases[i].rules);

		assert_int_equal(decoded.count, 1);
		assert_int_not_equal(decoded.first->defect, DEFECT_NONE);
		expect_text(decoded.first->key, cases[i].key);
		free(body);
		free_decoded(&decoded);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defects),
		cmocka_unit_test(test_sound_fields_beside_a_defect),
		cmocka_unit_test(test_lost_field_ends_the_search_for_the_key),
		cmocka_unit_test(test_element_without_a_message),
		cmocka_unit_test(test_made_up_message_id),
		cmocka_unit_test(test_made_up_message_id_is_no_key),
	};

	return cmocka_run_group_tests_name("defects", tests, NULL, NULL);
}
