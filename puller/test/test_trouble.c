/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trouble.h"

static struct troubles troubles;

static void
see(enum log_level level, const char *event, const char *sqlstate, const char *error)
{
	struct log_field fields[] = {{"sqlstate", LOG_TEXT, .text = sqlstate},
								 {"ids", LOG_INT, .number = 7},
								 {"err", LOG_TEXT, .text = error}};

	trouble_see(&troubles, level, event, fields, 3);
}

static void
newest_is_first_and_repeats_are_counted(void **state)
{
	(void) state;
	troubles.count = 0;
	see(LOG_WARNING, "a", "22012", "division by zero");
	see(LOG_ERROR, "b", NULL, "x");
	see(LOG_INFO, "c", NULL, "nothing to worry about");
	see(LOG_WARNING, "a", "22012", "division by zero");
	assert_int_equal(troubles.count, 2);
	assert_string_equal(troubles.trouble[0].event, "a");
	assert_string_equal(troubles.trouble[0].sqlstate, "22012");
	assert_int_equal(troubles.trouble[0].times, 2);
	assert_string_equal(troubles.trouble[1].error, "x");
}

static void
oldest_gives_way(void **state)
{
	char error[] = "A";

	(void) state;
	troubles.count = 0;
	for (int i = 0; i < TROUBLES_MAX + 5; i++, error[0]++)
	{
		see(LOG_ERROR, "e", NULL, error);
	}
	assert_int_equal(troubles.count, TROUBLES_MAX);
	assert_string_equal(troubles.trouble[0].error, "Y");
	assert_string_equal(troubles.trouble[TROUBLES_MAX - 1].error, "F");
	assert_int_equal(troubles.trouble[0].times, 1);
}

static void
text_is_cut_between_characters(void **state)
{
	char error[1000];

	(void) state;
	troubles.count = 0;
	for (size_t i = 0; i + 1 < sizeof(error); i += 2)
	{
		memcpy(error + i, "ü", 2);
	}
	error[998] = '\0';
	see(LOG_ERROR, "e", NULL, error);
	assert_int_equal(strlen(troubles.trouble[0].error), TROUBLE_TEXT_SIZE - 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest_is_first_and_repeats_are_counted),
		cmocka_unit_test(oldest_gives_way),
		cmocka_unit_test(text_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
