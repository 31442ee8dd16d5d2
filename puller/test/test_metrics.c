/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "metrics.h"

static void
fifty_values_are_told_apart(void **state)
{
	struct label label;
	char attributes[64];

	(void) state;
	label_init(&label, "attribute:event_type");
	for (int i = 0; i < 60; i++)
	{
		snprintf(attributes, sizeof(attributes), "{\"a\":\"b\",\"event_type\":\"t%d\"}", i);
		assert_int_equal(label_of(&label, attributes), i < 50 ? i + 2 : LABEL_OTHER);
	}
	assert_int_equal(label_of(&label, "{\"event_type\":\"t7\"}"), 9);
	assert_string_equal(label_value(&label, 9), "t7");
	assert_string_equal(label_value(&label, LABEL_OTHER), "other");
	assert_int_equal(label.count, LABELS);
	label_free(&label);
	/* A publisher's "other" is not a series of that name beside it. */
	label_init(&label, "attribute:event_type");
	assert_int_equal(label_of(&label, "{\"event_type\":\"other\"}"), LABEL_OTHER);
	assert_int_equal(label_of(&label, "{\"event_type\":\"oth\\u0065r\"}"), LABEL_OTHER);
	label_free(&label);
}

static void
what_has_no_value_has_no_label(void **state)
{
	struct label label;
	char attributes[400] = "{\"x\":\"";

	(void) state;
	label_init(&label, "attribute:x");
	assert_int_equal(label_of(&label, NULL), LABEL_NONE);
	assert_int_equal(label_of(&label, "{}"), LABEL_NONE);
	assert_int_equal(label_of(&label, "{\"x\":\"\"}"), LABEL_NONE);
	assert_int_equal(label_of(&label, "{\"x\":\"\\u0061\\\"\"}"), 2);
	assert_string_equal(label_value(&label, 2), "a\"");
	memset(attributes + 6, 'y', 300);
	strcpy(attributes + 306, "\"}");
	assert_int_equal(label_of(&label, attributes), LABEL_OTHER);
	label_free(&label);
	label_init(&label, NULL);
	assert_int_equal(label_of(&label, "{\"x\":\"y\"}"), LABEL_NONE);
	label_free(&label);
}

static void
expect_name(const char *option, const char *name)
{
	struct label label;

	label_init(&label, option);
	assert_string_equal(label.name, name);
	label_free(&label);
}

static void
names_are_such_as_labels_have(void **state)
{
	(void) state;
	expect_name("attribute:event_type", "event_type");
	expect_name("attribute:event-type.v2", "event_type_v2");
	expect_name("attribute:2nd", "message_2nd");
	expect_name("attribute:verdict", "message_verdict");
	expect_name("attribute:__name__", "message___name__");
	expect_name("attribute:größe", "gr____e");
	expect_name("attribute:état", "message___tat");
	assert_null(label_check("attribute:a"));
	assert_non_null(label_check("attribute:"));
	assert_non_null(label_check("event_type"));
	assert_non_null(label_check("attribute:\xFF"));
}

static void
failures_are_counted_by_class(void **state)
{
	static struct metrics metrics;
	char sqlstate[8];

	(void) state;
	metrics_init(&metrics, NULL);
	metrics_failure(&metrics, "23505");
	metrics_failure(&metrics, "23514");
	metrics_failure(&metrics, NULL);
	metrics_failure(&metrics, "\n\"");
	assert_int_equal(metrics.failure_classes, 3);
	assert_string_equal(metrics.failure_class[0], "23");
	assert_int_equal(metrics.failures[0], 2);
	assert_string_equal(metrics.failure_class[1], "none");
	assert_string_equal(metrics.failure_class[2], "other");
	for (int i = 0; i < 100; i++)
	{
		snprintf(sqlstate, sizeof(sqlstate), "%c%c000", 'A' + i / 10, 'A' + i % 10);
		metrics_failure(&metrics, sqlstate);
	}
	assert_int_equal(metrics.failure_classes, METRICS_CLASSES_MAX);
	assert_string_equal(metrics.failure_class[METRICS_CLASSES_MAX - 1], "other");
	metrics_failure(&metrics, "23505");
	assert_int_equal(metrics.failures[0], 3);
	metrics_free(&metrics);
}

static void
copies_of_the_last_dead_letters_are_recognised(void **state)
{
	static struct metrics metrics;
	char key[16];

	(void) state;
	metrics_init(&metrics, NULL);
	metrics_duplicate(&metrics, "k1");
	metrics_dead(&metrics, NULL);
	metrics_dead(&metrics, "k1");
	metrics_duplicate(&metrics, "k1");
	metrics_duplicate(&metrics, "k2");
	metrics_duplicate(&metrics, NULL);
	assert_int_equal(metrics.dead_duplicates, 1);
	for (int i = 0; i < METRICS_DEAD_MAX; i++)
	{
		snprintf(key, sizeof(key), "other %d", i);
		metrics_dead(&metrics, key);
	}
	metrics_duplicate(&metrics, "k1");
	assert_int_equal(metrics.dead_duplicates, 1);
	metrics_duplicate(&metrics, key);
	assert_int_equal(metrics.dead_duplicates, 2);
	metrics_free(&metrics);
}

static void
each_message_of_a_batch_took_its_share(void **state)
{
	static struct metrics metrics;

	(void) state;
	metrics_init(&metrics, NULL);
	metrics_batch(&metrics, 10, 200000, 250000);
	metrics_age(&metrics, 1000000, 3500000);
	metrics_age(&metrics, INT64_MIN, 3500000);
	assert_int_equal(metrics.committed, 1);
	assert_int_equal(metrics.handler.count, 10);
	assert_true(metrics.handler.sum > 0.1999 && metrics.handler.sum < 0.2001);
	assert_true(metrics.transaction.sum == 0.25);
	assert_int_equal(metrics.age.count, 1);
	assert_true(metrics.age_max == 2.5);
	metrics_free(&metrics);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fifty_values_are_told_apart),
		cmocka_unit_test(what_has_no_value_has_no_label),
		cmocka_unit_test(names_are_such_as_labels_have),
		cmocka_unit_test(failures_are_counted_by_class),
		cmocka_unit_test(copies_of_the_last_dead_letters_are_recognised),
		cmocka_unit_test(each_message_of_a_batch_took_its_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
