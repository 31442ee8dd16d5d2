/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exposition.h"
#include "text.h"

#define LABELS(...) ((struct exposition_label[]){__VA_ARGS__, {NULL, NULL}})

static void
expect(struct buffer *out, const char *text)
{
	assert_string_equal(out->bytes, text);
	buffer_free(out);
}

static void
labels_are_escaped(void **state)
{
	struct buffer out;

	(void) state;
	buffer_init(&out, 10000);
	exposition_count(&out, "m", LABELS({"a", "x\"y\\z\n"}, {"b", "ü{}"}), 7);
	exposition_count(&out, "m", LABELS({"a", "\"\"\\\\"}), 8);
	expect(&out, "m{a=\"x\\\"y\\\\z\\n\",b=\"ü{}\"} 7\nm{a=\"\\\"\\\"\\\\\\\\\"} 8\n");
}

static void
empty_labels_are_left_out(void **state)
{
	struct buffer out;

	(void) state;
	buffer_init(&out, 10000);
	exposition_count(&out, "m", LABELS({"a", ""}, {"b", "1"}), 1);
	exposition_count(&out, "m", LABELS({"a", ""}, {"b", NULL}), 2);
	exposition_count(&out, "m", NULL, UINT64_MAX);
	expect(&out, "m{b=\"1\"} 1\nm 2\nm 18446744073709551615\n");
}

static void
numbers_are_short_and_exact(void **state)
{
	struct buffer out;

	(void) state;
	buffer_init(&out, 10000);
	exposition_value(&out, "m", NULL, 0.1);
	exposition_value(&out, "m", NULL, 1.0 / 3);
	exposition_value(&out, "m", NULL, 1234567890.25);
	exposition_value(&out, "m", NULL, -0.0025);
	expect(&out, "m 0.1\nm 0.3333333333333333\nm 1234567890.25\nm -0.0025\n");
}

static void
buckets_add_up(void **state)
{
	static const double bounds[] = {0.5, 1};
	struct histogram histogram;
	struct buffer out;

	(void) state;
	histogram_init(&histogram, bounds, 2);
	histogram_add(&histogram, 0.25, 2);
	histogram_add(&histogram, 1, 1);
	histogram_add(&histogram, 9, 1);
	buffer_init(&out, 10000);
	exposition_histogram(&out, "m_seconds", "Time.", &histogram);
	expect(&out, "# HELP m_seconds Time.\n"
				 "# TYPE m_seconds histogram\n"
				 "m_seconds_bucket{le=\"0.5\"} 2\n"
				 "m_seconds_bucket{le=\"1\"} 3\n"
				 "m_seconds_bucket{le=\"+Inf\"} 4\n"
				 "m_seconds_sum 10.5\n"
				 "m_seconds_count 4\n");
}

static void
text_is_cut_at_the_limit(void **state)
{
	struct buffer out;

	(void) state;
	buffer_init(&out, 4);
	text_add(&out, "%s", "abc");
	text_add(&out, "%s", "de");
	assert_int_equal(out.size, 3);
	expect(&out, "abc");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_are_escaped),		   cmocka_unit_test(empty_labels_are_left_out),
		cmocka_unit_test(numbers_are_short_and_exact), cmocka_unit_test(buckets_add_up),
		cmocka_unit_test(text_is_cut_at_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
