/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "puller.h"

static struct puller puller;
static struct config config = {.handler = "f", .subscription = "s"};

static int
set_up(void **state)
{
	(void) state;
	puller = (struct puller){.config = &config};
	metrics_init(&puller.metrics, NULL);
	return 0;
}

static int
tear_down(void **state)
{
	(void) state;
	shadow_free(&puller.shadow);
	metrics_free(&puller.metrics);
	return 0;
}

static void
fail_with(const char *sqlstate, const char *reason, const char *error, const char *key)
{
	struct failure failure = {
		.sqlstate = (char *) sqlstate, .reason = reason, .error = (char *) error};
	struct message message = {.key = (char *) key};

	shadow_fail(&puller.shadow, &failure, &message);
}

/* To be freed. */
static char *
report(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	shadow_report(&puller, out);
	fclose(out);
	return text;
}

static void
nothing_is_said_of_what_did_not_happen(void **state)
{
	char *text = report();

	(void) state;
	assert_string_equal(text, "f would have made of 0 deliveries from s:\n");
	free(text);
}

static void
errors_are_counted_by_sqlstate_and_reason(void **state)
{
	char *text;

	(void) state;
	fail_with("22012", "handler", "division by zero", "a");
	fail_with("22012", "handler", "division by nothing", "b");
	fail_with(NULL, "no_key", "there is none", NULL);
	fail_with("P0001", "handler", "two\nlines", "c");
	text = report();
	assert_string_equal(text,
						"f would have made of 0 deliveries from s:\n"
						"what failed, by SQLSTATE:\n"
						"  22012          2  handler: division by zero; the first has the key a\n"
						"  -              1  no_key: there is none; the first has the key (none)\n"
						"  P0001          1  handler: two lines; the first has the key c\n");
	free(text);
}

static void
too_many_kinds_are_counted_together(void **state)
{
	char sqlstate[6];
	char *text;

	(void) state;
	for (int i = 0; i < SHADOW_ERRORS_MAX + 3; i++)
	{
		snprintf(sqlstate, sizeof(sqlstate), "X%04d", i);
		fail_with(sqlstate, "handler", "e", "k");
	}
	fail_with("X0000", "handler", "e", "k");
	text = report();
	assert_non_null(strstr(text, "  X0000          2  handler"));
	assert_non_null(strstr(text, "\n  and 3 of other kinds\n"));
	free(text);
}

static void
times_are_bounded(void **state)
{
	char *text;

	(void) state;
	metrics_batch(&puller.metrics, 1, 900, 1000);
	metrics_batch(&puller.metrics, 1, 900, 1000);
	metrics_batch(&puller.metrics, 1, INT64_C(900000000), INT64_C(900000000));
	text = report();
	assert_non_null(strstr(text, "half of them at most 1 ms, 99 % more than 60000 ms\n"));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_said_of_what_did_not_happen, set_up, tear_down),
		cmocka_unit_test_setup_teardown(errors_are_counted_by_sqlstate_and_reason, set_up,
										tear_down),
		cmocka_unit_test_setup_teardown(too_many_kinds_are_counted_together, set_up, tear_down),
		cmocka_unit_test_setup_teardown(times_are_bounded, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
