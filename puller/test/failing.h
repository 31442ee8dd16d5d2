/* SPDX-License-Identifier: PostgreSQL */
/*
 * Configurations that are refused, with every word that is said about them.
 */
#ifndef INBOX_TEST_FAILING_H
#define INBOX_TEST_FAILING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "load.h"
#include "memory.h"

#define GOOD "--subscription", SUBSCRIPTION, "--handler", "f"
#define EMULATOR "PUBSUB_EMULATOR_HOST", "localhost:8085"

struct failing
{
	const char *arguments[12];
	const char *variables[4]; /* name, value, … */
	const char *error;
	const char *hint; /* NULL: none */
};

static inline void
expect_messages(const struct loaded *loaded, const char *error, const char *hint)
{
	char *expected = hint != NULL ? memory_format("inbox-puller: error: %s\ninbox-puller: hint: "
												  "%s\n",
												  error, hint)
								  : memory_format("inbox-puller: error: %s\n", error);

	assert_string_equal(loaded->err, expected);
	assert_int_equal(loaded->outcome, CONFIG_BAD);
	assert_string_equal(loaded->out, "");
	free(expected);
}

static inline void
expect_all(const struct failing *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		struct loaded loaded;

		load_clean_environment();
		for (size_t j = 0; j < 4 && cases[i].variables[j] != NULL; j += 2)
		{
			setenv(cases[i].variables[j], cases[i].variables[j + 1], 1);
		}
		load(&loaded, cases[i].arguments);
		expect_messages(&loaded, cases[i].error, cases[i].hint);
		unload(&loaded);
	}
}

#define EXPECT_ALL(cases) expect_all((cases), sizeof(cases) / sizeof((cases)[0]))

#endif
