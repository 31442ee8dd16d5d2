/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "buffer.h"

static void
test_empty_has_no_bytes(void **state)
{
	struct buffer buffer;

	(void) state;
	buffer_init(&buffer, 10);
	assert_null(buffer.bytes);
	assert_int_equal(buffer.size, 0);
	buffer_free(&buffer);
}

static void
test_append_keeps_bytes_and_ends_in_nul(void **state)
{
	struct buffer buffer;

	(void) state;
	buffer_init(&buffer, 10);
	assert_true(buffer_append(&buffer, "ab\0c", 4));
	assert_true(buffer_append(&buffer, "", 0));
	assert_true(buffer_append(&buffer, NULL, 0));
	assert_true(buffer_append(&buffer, "d", 1));
	assert_int_equal(buffer.size, 5);
	assert_memory_equal(buffer.bytes, "ab\0cd", 6);
	buffer_free(&buffer);
}

static void
test_append_nothing_gives_an_empty_string(void **state)
{
	struct buffer buffer;

	(void) state;
	buffer_init(&buffer, 0);
	assert_true(buffer_append(&buffer, NULL, 0));
	assert_int_equal(buffer.size, 0);
	assert_string_equal(buffer.bytes, "");
	assert_false(buffer_append(&buffer, "x", 1));
	buffer_free(&buffer);
}

static void
test_limit_is_exact_and_refusal_appends_nothing(void **state)
{
	struct buffer buffer;

	(void) state;
	buffer_init(&buffer, 4);
	assert_true(buffer_append(&buffer, "abc", 3));
	assert_false(buffer_append(&buffer, "de", 2));
	assert_false(buffer_append(&buffer, "de", SIZE_MAX));
	assert_int_equal(buffer.size, 3);
	assert_string_equal(buffer.bytes, "abc");
	assert_true(buffer_append(&buffer, "d", 1));
	assert_false(buffer_append(&buffer, "e", 1));
	assert_string_equal(buffer.bytes, "abcd");
	buffer_free(&buffer);
}

static void
test_grows_over_many_appends(void **state)
{
	struct buffer buffer;
	char piece[251];

	(void) state;
	buffer_init(&buffer, 1 << 20);
	for (size_t i = 0; i < 1000; i++)
	{
		memset(piece, 'a' + (int) (i % 26), sizeof(piece));
		assert_true(buffer_append(&buffer, piece, sizeof(piece)));
	}
	assert_int_equal(buffer.size, 251000);
	for (size_t i = 0; i < buffer.size; i++)
	{
		assert_int_equal(buffer.bytes[i], 'a' + (int) (i / sizeof(piece) % 26));
	}
	assert_int_equal(buffer.bytes[buffer.size], '\0');
	buffer_free(&buffer);
}

static void
test_free_keeps_the_limit(void **state)
{
	struct buffer buffer;

	(void) state;
	buffer_init(&buffer, 2);
	assert_true(buffer_append(&buffer, "ab", 2));
	buffer_free(&buffer);
	assert_null(buffer.bytes);
	assert_int_equal(buffer.size, 0);
	assert_false(buffer_append(&buffer, "abc", 3));
	assert_true(buffer_append(&buffer, "cd", 2));
	assert_string_equal(buffer.bytes, "cd");
	buffer_free(&buffer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_has_no_bytes),
		cmocka_unit_test(test_append_keeps_bytes_and_ends_in_nul),
		cmocka_unit_test(test_append_nothing_gives_an_empty_string),
		cmocka_unit_test(test_limit_is_exact_and_refusal_appends_nothing),
		cmocka_unit_test(test_grows_over_many_appends),
		cmocka_unit_test(test_free_keeps_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
