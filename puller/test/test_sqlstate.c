/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backoff.h"
#include "contention.h"
#include "sqlstate.h"

static void
blames_a_message_only_for_what_is_its_own(void **state)
{
	static const struct
	{
		const char *sqlstate;
		enum sqlstate_class class;
	} cases[] = {
		{NULL, SQLSTATE_TRANSIENT},		{"08006", SQLSTATE_TRANSIENT},
		{"25006", SQLSTATE_TRANSIENT},	{"25P03", SQLSTATE_TRANSIENT},
		{"26000", SQLSTATE_TRANSIENT},	{"28000", SQLSTATE_TRANSIENT},
		{"3D000", SQLSTATE_TRANSIENT},	{"40001", SQLSTATE_TRANSIENT},
		{"40P01", SQLSTATE_CONTENTION}, {"55P03", SQLSTATE_CONTENTION},
		{"55000", SQLSTATE_MESSAGE},	{"53100", SQLSTATE_TRANSIENT},
		{"57014", SQLSTATE_TIMEOUT},	{"57P01", SQLSTATE_TRANSIENT},
		{"57P03", SQLSTATE_TRANSIENT},	{"57P05", SQLSTATE_TRANSIENT},
		{"58030", SQLSTATE_TRANSIENT},	{"XX000", SQLSTATE_INTERNAL},
		{"42883", SQLSTATE_DEPLOYMENT}, {"3F000", SQLSTATE_DEPLOYMENT},
		{"22012", SQLSTATE_MESSAGE},	{"23505", SQLSTATE_MESSAGE},
		{"P0001", SQLSTATE_MESSAGE},	{"IX001", SQLSTATE_MESSAGE},
		{"38000", SQLSTATE_MESSAGE},	{"IX003", SQLSTATE_DEPLOYMENT},
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		assert_int_equal(sqlstate_classify(cases[i].sqlstate), cases[i].class);
	}
}

static void
pauses_double_up_to_their_limit(void **state)
{
	struct backoff backoff = {.first_ms = 100, .limit_ms = 1000};
	static const int64_t expected[] = {100, 200, 400, 800, 1000, 1000};

	(void) state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
	{
		int64_t pause = backoff_next(&backoff);

		assert_in_range(pause, expected[i] * 80 / 100, expected[i] * 120 / 100);
	}
	backoff_reset(&backoff);
	assert_in_range(backoff_next(&backoff), 80, 120);
}

static void
sharing_is_tried_again_after_growing_pauses(void **state)
{
	struct contention contention;
	int64_t now = 1000000;

	(void) state;
	contention_init(&contention);
	assert_false(contention_is_exclusive(&contention, now));
	for (int64_t pause = 1000; pause <= 128000; pause *= 2)
	{
		int64_t expected = pause < 60000 ? pause : 60000;

		contention_meet(&contention, now);
		/* Those that were under way when the mode changed lengthen nothing. */
		contention_meet(&contention, now);
		assert_true(contention_is_exclusive(&contention, now + expected - 1));
		assert_false(contention_is_exclusive(&contention, now + expected));
		now += expected + 1;
	}
	/* Sharing that lasted as long as the pause starts over. */
	now += 61000;
	contention_meet(&contention, now);
	assert_false(contention_is_exclusive(&contention, now + 1000));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blames_a_message_only_for_what_is_its_own),
		cmocka_unit_test(pauses_double_up_to_their_limit),
		cmocka_unit_test(sharing_is_tried_again_after_growing_pauses),
	};

	return cmocka_run_group_tests_name("sqlstate", tests, NULL, NULL);
}
