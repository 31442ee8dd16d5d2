/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trace.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static void
expect(const char *attributes, const char *expected)
{
	char out[TRACE_SIZE];
	const char *found = trace_find(attributes, out);

	if (expected == NULL)
	{
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_string_equal(found, expected);
}

static void
either_attribute_is_found(void **state)
{
	(void) state;
	expect("{\"googclient_traceparent\":\"" PARENT "\"}", PARENT);
	expect("{\"a\":\"b\",\"traceparent\":\"" PARENT "\"}", PARENT);
	expect("{\"googclient_traceparent\":\"broken\",\"traceparent\":\"" PARENT "\"}", PARENT);
}

static void
what_is_not_well_formed_is_none(void **state)
{
	(void) state;
	expect(NULL, NULL);
	expect("{}", NULL);
	expect("{\"traceparent\":\"\"}", NULL);
	expect("{\"traceparent\":\"" PARENT "0\"}", NULL);
	expect("{\"traceparent\":\"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}", NULL);
	expect("{\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333\\n-01\"}", NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(either_attribute_is_found),
		cmocka_unit_test(what_is_not_well_formed_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
