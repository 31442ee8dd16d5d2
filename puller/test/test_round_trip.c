/* SPDX-License-Identifier: PostgreSQL */
/*
 * Messages drawn from a seed, written as JSON in one of the many ways JSON allows, decoded, and
 * compared; then with a byte of the response changed, or its end cut off.
 */
#include "decoded.h"

#include "original.h"
#include "sound.h"

#define ROUNDS 3000
static void
compare_attributes(const char *attributes, const struct original *original)
{
	struct json_object *object = json_tokener_parse(attributes);

	assert_non_null(object);
	assert_int_equal(json_object_object_length(object), original->attributes);
	for (unsigned i = 0; i < original->attributes; i++)
	{
		struct json_object *value;

		assert_true(json_object_object_get_ex(object, original->name[i].bytes, &value));
		assert_string_equal(json_object_get_string(value), original->value[i].bytes);
	}
	json_object_put(object);
}

static void
compare(const struct message *message, const struct original *original)
{
	assert_null(find_unsound(message));
	assert_int_equal(message->defect, DEFECT_NONE);
	assert_string_equal(message->ack_id, original->ack_id.bytes);
	assert_string_equal(message->message_id, original->message_id.bytes);
	assert_string_equal(message->ordering_key != NULL ? message->ordering_key : "",
						original->ordering_key.bytes);
	assert_string_equal(message->key, original->value[0].bytes);
	assert_int_equal(message->data_size, original->data_size);
	if (original->data_size > 0)
	{
		assert_memory_equal(message->data, original->data, original->data_size);
	}
	assert_int_equal(message->delivery_attempt, original->delivery_attempt);
	compare_attributes(message->attributes, original);
}

static void
test_what_is_written_is_read(void **state)
{
	(void) state;
	for (seed = 1; seed <= ROUNDS; seed++)
	{
		uint64_t round = seed;
		struct original originals[MESSAGES_MAX];
		struct buffer body;
		unsigned count = draw_response(originals, &body);
		struct decoded decoded = decode(body.bytes, body.size, "attribute:k");
		const struct message *message = decoded.first;

		if (decoded.count != (int) count || decoded.skipped != 0)
		{
			fail_msg("seed %u: %d of %u, %s", (unsigned) round, decoded.count, count,
					 decoded.error.text);
		}
		for (unsigned i = 0; i < count; i++, message = TAILQ_NEXT(message, link))
		{
			compare(message, &originals[i]);
		}
		free_decoded(&decoded);
		buffer_free(&body);
		seed = round;
	}
}

static void
test_changed_bytes_give_sound_messages_or_none(void **state)
{
	static const char bytes[] = "\0\"\\{}[]:,u0\x80\xc3\xed\xf0\xff\n d=/";
	unsigned garbage = 0;

	(void) state;
	for (seed = 1; seed <= ROUNDS; seed++)
	{
		uint64_t round = seed;
		struct original originals[MESSAGES_MAX];
		struct buffer body;
		struct decoded decoded;

		draw_response(originals, &body);
		for (unsigned changes = 1 + draw(3); changes > 0; changes--)
		{
			body.bytes[draw((unsigned) body.size)] = bytes[draw(sizeof(bytes) - 1)];
		}
		decoded = decode(body.bytes, body.size, "attribute:k");
		garbage += decoded.count < 0;
		for (struct message *message = decoded.first; message != NULL;
			 message = TAILQ_NEXT(message, link))
		{
			if (find_unsound(message) != NULL)
			{
				fail_msg("seed %u: %s", (unsigned) round, find_unsound(message));
			}
		}
		free_decoded(&decoded);
		buffer_free(&body);
		seed = round;
	}
	/* Both happen, or the changes are not what they are meant to be. */
	assert_in_range(garbage, ROUNDS / 10, ROUNDS * 9 / 10);
}

static void
test_cut_short_is_garbage_or_empty(void **state)
{
	(void) state;
	for (seed = 1; seed <= ROUNDS / 10; seed++)
	{
		uint64_t round = seed;
		struct original originals[MESSAGES_MAX];
		struct buffer body;
		size_t size;

		draw_response(originals, &body);
		size = draw((unsigned) body.size);
		while (size > 0 && strchr("} \t\r\n", body.bytes[size]) != NULL)
		{
			size--;
		}
		for (size_t less = 0; less < 16 && less < size; less++)
		{
			struct decoded decoded = decode(body.bytes, size - less, "attribute:k");

			assert_true(decoded.count <= 0);
			assert_null(decoded.first);
		}
		buffer_free(&body);
		seed = round;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_changed_bytes_give_sound_messages_or_none),
		cmocka_unit_test(test_cut_short_is_garbage_or_empty),
	};

	return cmocka_run_group_tests_name("round_trip", tests, NULL, NULL);
}
