/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "timestamp.h"

static void
test_sound_times(void **state)
{
	static const struct
	{
		const char *text;
		int64_t microseconds;
	} times[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"1970-01-01T00:00:00.000001Z", 1},
		{"1970-01-01T00:00:00.0000019Z", 1},
		{"1970-01-01T00:00:00.000001999Z", 1},
		{"1970-01-01T00:00:00.5Z", 500000},
		{"1969-12-31T23:59:59.999999Z", -1},
		{"1969-12-31T23:59:59.999999999Z", -1},
		{"2026-11-30T07:50:22.724Z", INT64_C(1796025022724000)},
		{"2026-11-30T07:50:22Z", INT64_C(1796025022000000)},
		{"2000-02-29T12:00:00Z", INT64_C(951825600000000)},
		{"2400-02-29T00:00:00Z", INT64_C(13574563200000000)},
		{"0001-01-01T00:00:00Z", INT64_C(-62135596800000000)},
		{"9999-12-31T23:59:59.999999999Z", INT64_C(253402300799999999)},
	};

	(void) state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
	{
		int64_t microseconds;

		if (!timestamp_parse(times[i].text, &microseconds))
		{
			fail_msg("refused: %s", times[i].text);
		}
		assert_true(microseconds == times[i].microseconds);
	}
}

static void
test_malformed_times(void **state)
{
	static const char *const malformed[] = {
		"",
		"Z",
		"2026",
		"2026-11-30",
		"2026-11-30T07:50:22",
		"2026-11-30T07:50Z",
		"2026-11-30 07:50:22Z",
		"2026-11-30t07:50:22Z",
		"2026-11-30T07:50:22z",
		"2026-11-30T07:50:22+00:00",
		"2026-11-30T07:50:22-01:00",
		"2026-11-30T07:50:22.Z",
		"2026-11-30T07:50:22,5Z",
		"2026-11-30T07:50:22.1234567890Z",
		"2026-11-30T07:50:22.12x4Z",
		"2026-11-30T07:50:22.-1Z",
		"2026-11-30T07:50:22Z ",
		" 2026-11-30T07:50:22Z",
		"2026-11-30T07:50:22ZZ",
		"2026-00-30T07:50:22Z",
		"2026-13-30T07:50:22Z",
		"2026-11-00T07:50:22Z",
		"2026-11-31T07:50:22Z",
		"2026-02-29T07:50:22Z",
		"2100-02-29T07:50:22Z",
		"2024-02-30T07:50:22Z",
		"2026-11-30T24:00:00Z",
		"2026-11-30T07:60:22Z",
		"2026-11-30T07:50:60Z",
		"0000-01-01T00:00:00Z",
		"-001-01-01T00:00:00Z",
		"12026-11-30T07:50:22Z",
		"2026-1-30T07:50:22Z",
		"2026-11-30T7:50:22Z",
		"+026-11-30T07:50:22Z",
		"1796025022",
		"\xd9\xa2\xd9\xa0-11-30T07:50:22Z",
	};

	(void) state;
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
	{
		int64_t microseconds;

		if (timestamp_parse(malformed[i], &microseconds))
		{
			fail_msg("taken: %s", malformed[i]);
		}
	}
}

/* The C library's calendar is the judge. */
static void
test_calendar_agrees_with_the_c_library(void **state)
{
	(void) state;
	for (int64_t seconds = INT64_C(-62135596800); seconds < INT64_C(253402300800);
		 seconds += 97 * 86400 + 3607)
	{
		time_t moment = (time_t) seconds;
		struct tm parts;
		char text[64];
		int64_t microseconds;

		assert_non_null(gmtime_r(&moment, &parts));
		snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.25Z", parts.tm_year + 1900,
				 parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
		assert_true(timestamp_parse(text, &microseconds));
		assert_true(microseconds == seconds * 1000000 + 250000);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound_times),
		cmocka_unit_test(test_malformed_times),
		cmocka_unit_test(test_calendar_agrees_with_the_c_library),
	};

	return cmocka_run_group_tests_name("timestamp", tests, NULL, NULL);
}
