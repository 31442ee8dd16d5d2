/* SPDX-License-Identifier: PostgreSQL */
/*
 * Memory runs out at every place in a stream of messages through simulated pullers: up to there
 * nothing was acknowledged that had not ended. Arguments are the seeds.
 */
#include "exhaust.h"

#include "simulated_run.h"

static uint64_t seed_of_run;

static void
run_once(void **state)
{
	(void) state;
	load_clean_environment();
	run(seed_of_run);
}

static int
run_seed(const void *seed)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(run_once)};
	long before = live;

	seed_of_run = strtoull(seed, NULL, 10);
	if (cmocka_run_group_tests(tests, NULL, NULL) != 0)
	{
		return 1;
	}
	if (live > before)
	{
		printf("%ld blocks are not freed\n", live - before);
		return 1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	bool well = argc > 1;

	armed = &puller_works;
	for (int i = 1; i < argc; i++)
	{
		well &= exhaust(argv[i], run_seed, argv[i]);
	}
	return well ? 0 : 1;
}
