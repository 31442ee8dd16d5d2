/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ackid.h"
#include "base64.h"
#include "body.h"
#include "buf.h"
#include "list.h"
#include "moment.h"
#include "problem.h"
#include "random.h"
#include "timer.h"

static void
ack_ids_survive_the_round_trip(void **state)
{
	struct random random = {7};

	(void) state;
	for (int i = 0; i < 1000; i++)
	{
		struct ackid id = {random_next(&random), random_next(&random), random_next(&random)};
		struct ackid back;
		char text[ACKID_LEN];

		ackid_format(42, &id, text);
		assert_true(ackid_parse(42, text, ACKID_LEN, &back));
		assert_memory_equal(&id, &back, sizeof(id));
		assert_false(ackid_parse(43, text, ACKID_LEN, &back));
		assert_false(ackid_parse(42, text, ACKID_LEN - 1, &back));
		text[random_below(&random, ACKID_LEN)] ^= 1;
		assert_false(ackid_parse(42, text, ACKID_LEN, &back));
	}
}

static void
ack_ids_of_neighbours_look_nothing_alike(void **state)
{
	struct ackid first = {1, 1, 1};
	struct ackid second = {1, 1, 2};
	char one[ACKID_LEN];
	char two[ACKID_LEN];
	int same = 0;

	(void) state;
	ackid_format(42, &first, one);
	ackid_format(42, &second, two);
	for (int i = 0; i < ACKID_LEN; i++)
		same += one[i] == two[i];
	assert_true(same < ACKID_LEN / 8);
}

static void
base64_is_normalised_or_refused(void **state)
{
	static const struct
	{
		const char *text;
		const char *expected; /* NULL: refused */
		size_t bytes;
	} cases[] = {
		{"", "", 0},		 {"YQ", "YQ==", 1},	 {"YQ==", "YQ==", 1},	{"YWI=", "YWI=", 2},
		{"YWJj", "YWJj", 3}, {"-_8", "+/8=", 2}, {"Y", NULL, 0},		{"Y===", NULL, 0},
		{"YQ=", "YQ==", 1},	 {"Y Q=", NULL, 0},	 {"YQ==YQ==", NULL, 0}, {"=", NULL, 0},
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		char *result = NULL;
		size_t len;
		size_t bytes;
		bool good = base64_normalise(cases[i].text, strlen(cases[i].text), &result, &len, &bytes);

		assert_int_equal(good, cases[i].expected != NULL);
		if (!good)
			continue;
		assert_string_equal(result, cases[i].expected);
		assert_int_equal(len, strlen(result));
		assert_int_equal(bytes, cases[i].bytes);
		free(result);
	}
}

static void
moments_are_read_and_written(void **state)
{
	char text[MOMENT_SIZE];
	int64_t moment;

	(void) state;
	assert_true(moment_parse("2026-11-30T07:50:22.724Z", &moment));
	moment_format(moment, text);
	assert_string_equal(text, "2026-11-30T07:50:22.724Z");
	assert_true(moment_parse("2026-11-30T08:50:22.123456789+01:00", &moment));
	moment_format(moment, text);
	assert_string_equal(text, "2026-11-30T07:50:22.123456789Z");
	assert_false(moment_parse("2026-11-30", &moment));
	assert_false(moment_parse("2026-11-30T07:50:22", &moment));
	assert_false(moment_parse("2026-11-30T07:50:22.", &moment));
	assert_false(moment_parse("2026-11-30T07:50:22Zz", &moment));
	assert_false(moment_parse("noon", &moment));
}

static void
compact_json_keeps_what_is_in_strings(void **state)
{
	struct buf buf = {0};

	(void) state;
	buf_text(&buf, "{\n  \"a b\": [ 1, \"\\\"  \\\\\" ]\n}\n");
	buf_compact_json(&buf, 0);
	assert_string_equal(buf.data, "{\"a b\":[1,\"\\\"  \\\\\"]}");
	buf_free(&buf);
}

static void
strings_are_escaped(void **state)
{
	struct buf buf = {0};

	(void) state;
	buf_json(&buf, "a\"\\\n\0\x01\xc3\xbc", 8);
	assert_string_equal(buf.data, "\"a\\\"\\\\\\n\\u0000\\u0001\xc3\xbc\"");
	buf_free(&buf);
}

static void
names_match_in_both_spellings(void **state)
{
	(void) state;
	assert_true(body_same_name("maxMessages", "maxMessages"));
	assert_true(body_same_name("max_messages", "maxMessages"));
	assert_false(body_same_name("maxmessages", "maxMessages"));
	assert_false(body_same_name("max__messages", "maxMessages"));
	assert_false(body_same_name("maxMessagesX", "maxMessages"));
}

static void
bodies_are_one_object_to_the_last_byte(void **state)
{
	static const char *const wrong[] = {"[]", "{", "{} {}", "{}x", "1", "{\"a\":\"\xff\"}"};
	struct problem problem = {0};
	struct json_object *object = body_parse("", 0, &problem);

	(void) state;
	assert_non_null(object);
	json_object_put(object);
	object = body_parse(" {\"a\": 1}\r\n", 11, &problem);
	assert_non_null(object);
	json_object_put(object);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_null(body_parse(wrong[i], strlen(wrong[i]), &problem));
}

struct counted
{
	struct timer timer;
	int64_t *last;
	int *fired;
};

static void
count(struct timer *timer)
{
	struct counted *counted = OWNER(timer, struct counted, timer);

	assert_true(timer->at >= *counted->last);
	*counted->last = timer->at;
	++*counted->fired;
}

static void
timers_fire_in_order(void **state)
{
	static struct counted all[2000];
	struct timers timers = {0};
	struct random random = {3};
	int64_t last = 0;
	int fired = 0;

	(void) state;
	for (int i = 0; i < 2000; i++)
	{
		all[i] = (struct counted){{0, count, 0}, &last, &fired};
		timer_set(&timers, &all[i].timer, (int64_t) random_below(&random, 500));
	}
	for (int i = 0; i < 2000; i += 3)
		timer_set(&timers, &all[i].timer, (int64_t) random_below(&random, 500));
	for (int i = 0; i < 2000; i += 2)
		timer_cancel(&timers, &all[i].timer);
	timers_run(&timers);
	assert_int_equal(fired, 1000);
	assert_int_equal(timers_next(&timers), INT64_MAX);
	timers_free(&timers);
}

static void
streams_of_a_seed_are_independent(void **state)
{
	struct random one = random_stream(1, "a");
	struct random again = random_stream(1, "a");
	struct random other = random_stream(1, "b");
	uint64_t first = random_next(&one);

	(void) state;
	assert_int_equal(first, random_next(&again));
	assert_int_not_equal(first, random_next(&other));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ack_ids_survive_the_round_trip),
		cmocka_unit_test(ack_ids_of_neighbours_look_nothing_alike),
		cmocka_unit_test(base64_is_normalised_or_refused),
		cmocka_unit_test(moments_are_read_and_written),
		cmocka_unit_test(compact_json_keeps_what_is_in_strings),
		cmocka_unit_test(strings_are_escaped),
		cmocka_unit_test(names_match_in_both_spellings),
		cmocka_unit_test(bodies_are_one_object_to_the_last_byte),
		cmocka_unit_test(timers_fire_in_order),
		cmocka_unit_test(streams_of_a_seed_are_independent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
