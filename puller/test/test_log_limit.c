/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "log_limit.h"

static void
burst_then_a_steady_few(void **state)
{
	uint64_t count;
	int written = 0;

	(void) state;
	for (int i = 0; i < 2000; i++)
	{
		written += log_limit_take("flood", 5000);
	}
	assert_int_equal(written, LOG_LIMIT_BURST);
	assert_true(log_limit_take("another", 5000));
	assert_null(log_limit_next(5000, false, &count));
	for (int i = 0; i < 1000; i++)
	{
		written += log_limit_take("flood", 15000);
	}
	assert_int_equal(written, LOG_LIMIT_BURST + 10 * LOG_LIMIT_PER_SECOND);
	assert_string_equal(log_limit_next(15000, false, &count), "flood");
	assert_int_equal(count, 3000 - written);
	assert_null(log_limit_next(15000, true, &count));
}

static void
rest_is_told_at_the_end(void **state)
{
	uint64_t count;

	(void) state;
	for (int i = 0; i < LOG_LIMIT_BURST + 3; i++)
	{
		log_limit_take("end", 100000);
	}
	assert_null(log_limit_next(100000, false, &count));
	assert_string_equal(log_limit_next(100000, true, &count), "end");
	assert_int_equal(count, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(burst_then_a_steady_few),
		cmocka_unit_test(rest_is_told_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
