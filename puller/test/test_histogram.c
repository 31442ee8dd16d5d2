/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "histogram.h"

static void
value_on_a_bound_is_below_it(void **state)
{
	static const double bounds[] = {1, 2, 5};
	struct histogram histogram;

	(void) state;
	histogram_init(&histogram, bounds, 3);
	histogram_add(&histogram, 1, 1);
	histogram_add(&histogram, 1.001, 1);
	histogram_add(&histogram, 5, 1);
	histogram_add(&histogram, 5.001, 3);
	assert_int_equal(histogram.bucket[0], 1);
	assert_int_equal(histogram.bucket[1], 1);
	assert_int_equal(histogram.bucket[2], 1);
	assert_int_equal(histogram.bucket[3], 3);
	assert_int_equal(histogram.count, 6);
	assert_true(histogram.sum > 22.003 && histogram.sum < 22.005);
}

static void
nothing_is_younger_than_now(void **state)
{
	struct histogram histogram;

	(void) state;
	histogram_init(&histogram, histogram_ages, histogram_age_count);
	histogram_add(&histogram, -3, 2);
	assert_int_equal(histogram.bucket[0], 2);
	assert_true(histogram.sum == 0);
}

static void
expect_rising(const double *bounds, size_t count)
{
	assert_true(count <= HISTOGRAM_BOUNDS_MAX);
	for (size_t i = 1; i < count; i++)
	{
		assert_true(bounds[i - 1] < bounds[i]);
	}
}

static void
bounds_rise(void **state)
{
	(void) state;
	expect_rising(histogram_durations, histogram_duration_count);
	expect_rising(histogram_ages, histogram_age_count);
	expect_rising(histogram_sizes, histogram_size_count);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(value_on_a_bound_is_below_it),
		cmocka_unit_test(nothing_is_younger_than_now),
		cmocka_unit_test(bounds_rise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
