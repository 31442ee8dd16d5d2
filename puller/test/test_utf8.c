/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "utf8.h"

/* At whichever byte a text is cut, what is left are the characters that are whole. */
static void
test_a_cut_text_ends_with_a_whole_character(void **state)
{
	static const char text[] = "a\xC3\xA9"
							   "b\xE2\x82\xAC"
							   "c\xF0\x9F\x92\xB6";
	static const size_t whole[] = {0, 1, 1, 3, 4, 4, 4, 7, 8, 8, 8, 8, 12};

	(void) state;
	for (size_t size = 0; size < sizeof(text); size++)
	{
		char cut[sizeof(text)];

		snprintf(cut, size + 1, "%s", text);
		utf8_trim(cut);
		assert_int_equal(strlen(cut), whole[size]);
		assert_memory_equal(cut, text, whole[size]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cut_text_ends_with_a_whole_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
