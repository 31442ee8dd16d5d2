/* SPDX-License-Identifier: PostgreSQL */
/*
 * Streams of messages through simulated pullers: each message ends once, is acknowledged only
 * then, in the order of its ordering key, and the loop neither spins nor sleeps over something
 * that could go on. SEED and SEEDS choose the runs, or SEED and how many SECONDS new ones are begun;
 * with TRACE set the events are shown.
 */
#include <time.h>

#include "simulated_run.h"

static uint64_t
number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t current;

/* A failed assertion does not come back from run(). */
static int
name_seed(void **state)
{
	(void) state;
	fprintf(stderr, "the last run was SEED=%llu SEEDS=1\n", (unsigned long long) current);
	return 0;
}

static void
every_message_ends_once_and_in_order(void **state)
{
	uint64_t first = number_of("SEED", 1);
	time_t end = time(NULL) + (time_t) number_of("SECONDS", 0);
	uint64_t seeds = number_of("SEEDS", end > time(NULL) ? UINT64_MAX : 200);
	uint64_t done = 0;

	(void) state;
	load_clean_environment();
	while (done < seeds && (seeds != UINT64_MAX || time(NULL) < end))
	{
		current = first + done++;
		run(current);
	}
	printf("%llu seeds from SEED=%llu\n", (unsigned long long) done, (unsigned long long) first);
}

/* Or a seed would not be enough to have a failure again. */
static void
run_is_the_same_again(void **state)
{
	uint64_t first = number_of("SEED", 1);
	uint64_t before = 0;

	(void) state;
	load_clean_environment();
	for (current = first; current < first + 20; current++)
	{
		uint64_t once;

		run(current);
		once = trace;
		run(current);
		assert_int_equal(once, trace);
		assert_int_not_equal(once, before);
		before = once;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(run_is_the_same_again, name_seed),
		cmocka_unit_test_teardown(every_message_ends_once_and_in_order, name_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
