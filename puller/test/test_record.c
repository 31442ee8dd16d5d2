/* SPDX-License-Identifier: PostgreSQL */
/* The binary format, byte for byte as PostgreSQL's receive functions read it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "record.h"

#define NOTHING "\xff\xff\xff\xff"

/* A string literal with its zeros, without the one at its end. */
#define BYTES(text) (text), sizeof(text) - 1

static struct message *message;
static struct buffer out;

static int
set_up(void **state)
{
	(void) state;
	message = message_new();
	message->message_id = memory_copy_text("7");
	buffer_init(&out, 1000);
	return 0;
}

static int
tear_down(void **state)
{
	(void) state;
	message_free(message);
	buffer_free(&out);
	return 0;
}

static void
expect(const char *bytes, size_t size)
{
	assert_int_equal(out.size, size);
	assert_memory_equal(out.bytes, bytes, size);
}

/* Eight fields, each with its type, its size and its bytes. */
static void
whole_message(void **state)
{
	static const unsigned char payload[] = {'\0', 0xff};

	(void) state;
	message->key = memory_copy_text("k\xc3\xa9");
	message->data = memory_new(sizeof(payload));
	memcpy(message->data, payload, sizeof(payload));
	message->data_size = sizeof(payload);
	message->attributes = memory_copy_text("{}");
	message->ordering_key = memory_copy_text("o");
	message->publish_time = INT64_C(946684800000001); /* a microsecond after 2000 began */
	message->delivery_attempt = 3;
	assert_true(record_append(&out, message));
	expect(BYTES("\0\0\0\10"
				 "\0\0\0\31\0\0\0\3k\xc3\xa9" /* text */
				 "\0\0\0\21\0\0\0\2\0\xff"	  /* bytea */
				 "\0\0\16\332\0\0\0\3\1{}"	  /* jsonb, version 1 */
				 "\0\0\0\31\0\0\0\1o"		  /* text */
				 "\0\0\0\31\0\0\0\1"
				 "7"								   /* text */
				 "\0\0\4\240\0\0\0\10\0\0\0\0\0\0\0\1" /* timestamptz */
				 "\0\0\0\27\0\0\0\4\0\0\0\3"		   /* integer */
				 "\0\0\0\31" NOTHING));				   /* the source: the batch's own */
}

/* No payload is an empty one; whatever else is absent is NULL. */
static void
least_message(void **state)
{
	(void) state;
	assert_true(record_append(&out, message));
	expect(BYTES("\0\0\0\10"
				 "\0\0\0\31" NOTHING "\0\0\0\21\0\0\0\0"
				 "\0\0\16\332" NOTHING "\0\0\0\31" NOTHING "\0\0\0\31\0\0\0\1"
				 "7"
				 "\0\0\4\240" NOTHING "\0\0\0\27" NOTHING "\0\0\0\31" NOTHING));
}

/* What cannot be understood is kept as it came. */
static void
envelope_is_the_payload_of_a_defect(void **state)
{
	(void) state;
	message->defect = DEFECT_UNDECODABLE;
	message->envelope = memory_copy_text("{\"x\"}");
	message->envelope_size = 5;
	message->data = memory_new(1);
	message->data_size = 1;
	assert_true(record_append(&out, message));
	assert_memory_equal(out.bytes + 12, "\0\0\0\21\0\0\0\5{\"x\"}", 13);
}

static void
array_of_messages(void **state)
{
	struct message *messages[] = {message, message};
	struct buffer single;

	(void) state;
	buffer_init(&single, 1000);
	assert_true(record_append(&single, message));
	assert_true(record_append_array(&out, 0x01020304, messages, 2));
	assert_int_equal(out.size, 20 + 2 * (4 + single.size));
	assert_memory_equal(out.bytes, "\0\0\0\1\0\0\0\0\1\2\3\4\0\0\0\2\0\0\0\1\0\0\0", 23);
	assert_int_equal(out.bytes[23], single.size);
	assert_memory_equal(out.bytes + 24, single.bytes, single.size);
	assert_memory_equal(out.bytes + 28 + single.size, single.bytes, single.size);
	buffer_free(&single);
}

static void
limit_is_kept(void **state)
{
	(void) state;
	for (size_t limit = 0; limit < 89; limit++)
	{
		struct message *messages[] = {message};
		struct buffer small;

		buffer_init(&small, limit);
		assert_false(record_append_array(&small, 1, messages, 1));
		buffer_free(&small);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whole_message, set_up, tear_down),
		cmocka_unit_test_setup_teardown(least_message, set_up, tear_down),
		cmocka_unit_test_setup_teardown(envelope_is_the_payload_of_a_defect, set_up, tear_down),
		cmocka_unit_test_setup_teardown(array_of_messages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limit_is_kept, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
