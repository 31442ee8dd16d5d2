/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "history.h"

static struct metrics metrics;
static struct history history;

static void
start(void)
{
	metrics_init(&metrics, NULL);
	history_init(&history, 1000);
}

static void
step_has_what_was_counted_in_it(void **state)
{
	(void) state;
	start();
	metrics.messages[METRICS_APPLIED][LABEL_NONE] = 5;
	metrics.messages[METRICS_DEAD][LABEL_NONE] = 1;
	metrics_age(&metrics, 0, 2000000);
	metrics_age(&metrics, 0, 4000000);
	history_take(&history, &metrics, 3, 1, 10999);
	assert_null(history_at(&history, 0));
	history_take(&history, &metrics, 3, 1, 11000);
	metrics.messages[METRICS_APPLIED][LABEL_NONE] = 7;
	history_take(&history, &metrics, 0, 0, 21000);
	assert_int_equal(history_at(&history, 1)->applied, 5);
	assert_int_equal(history_at(&history, 1)->failed, 1);
	assert_int_equal(history_at(&history, 1)->dead, 1);
	assert_int_equal(history_at(&history, 1)->held, 3);
	assert_true(history_at(&history, 1)->age == 3);
	assert_true(history_at(&history, 1)->age_max == 4);
	assert_int_equal(history_at(&history, 0)->applied, 2);
	assert_true(history_at(&history, 0)->age < 0);
	assert_null(history_at(&history, 2));
}

static void
sleep_is_steps_without_messages(void **state)
{
	(void) state;
	start();
	metrics.messages[METRICS_APPLIED][LABEL_NONE] = 5;
	history_take(&history, &metrics, 0, 0, 1000 + 5 * HISTORY_STEP_MS);
	assert_int_equal(history.count, 5);
	assert_int_equal(history_at(&history, 4)->applied, 5);
	assert_int_equal(history_at(&history, 3)->applied, 0);
	assert_int_equal(history_at(&history, 0)->applied, 0);
}

static void
only_an_hour_is_kept(void **state)
{
	(void) state;
	start();
	history_take(&history, &metrics, 0, 0, INT64_C(100) * 3600 * 1000);
	assert_true(history.count <= HISTORY_STEPS + 2);
	assert_non_null(history_at(&history, HISTORY_STEPS - 1));
	assert_null(history_at(&history, HISTORY_STEPS));
	assert_true(history.end_ms > INT64_C(100) * 3600 * 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step_has_what_was_counted_in_it),
		cmocka_unit_test(sleep_is_steps_without_messages),
		cmocka_unit_test(only_an_hour_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
