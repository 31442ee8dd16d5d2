/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "listen_address.h"

static void
expect(const char *value, const char *bound)
{
	struct listen_address address;
	char text[LISTEN_ADDRESS_SIZE];

	assert_null(listen_address_parse(value, &address));
	assert_string_equal(listen_address_text(&address, text), bound);
}

static void
loopback_unless_told_otherwise(void **state)
{
	(void) state;
	expect("9187", "127.0.0.1:9187");
	expect("0", "127.0.0.1:0");
	expect("localhost:80", "127.0.0.1:80");
	expect("127.0.0.1:9187", "127.0.0.1:9187");
	expect("0.0.0.0:9187", "0.0.0.0:9187");
	expect("[::1]:65535", "[::1]:65535");
	expect("[::]:1", "[::]:1");
}

static void
everything_else_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		":",
		":80",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:65536",
		"127.0.0.1:-1",
		"::1:80",
		"[::1]",
		"[]:80",
		"example.org:80",
		"127.0.0.1:80x",
		"127.0.0.1: 80",
		"127.0.0.1:000080",
		"1111111111111111111111111111111111111111111111111111111111111111111111:80"};
	struct listen_address address;

	(void) state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		if (listen_address_parse(wrong[i], &address) == NULL)
		{
			fail_msg("\"%s\" is taken", wrong[i]);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_unless_told_otherwise),
		cmocka_unit_test(everything_else_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
