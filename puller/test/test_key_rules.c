/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "key.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void
test_rules_are_parsed(void **state)
{
	static const struct
	{
		const char *text;
		enum key_rule_kind kind;
		const char *argument;
	} sound[] = {
		{"attribute:idempotency_key", KEY_ATTRIBUTE, "idempotency_key"},
		{"attribute: a:b ", KEY_ATTRIBUTE, " a:b "},
		{"attribute:\xc3\xa9", KEY_ATTRIBUTE, "\xc3\xa9"},
		{"json:/id", KEY_JSON_POINTER, "/id"},
		{"json:", KEY_JSON_POINTER, ""},
		{"json:/", KEY_JSON_POINTER, "/"},
		{"json:/a~1b/~0/0", KEY_JSON_POINTER, "/a~1b/~0/0"},
		{"message-id", KEY_MESSAGE_ID, NULL},
	};
	struct key_rules rules = {.count = 0};

	(void) state;
	for (size_t i = 0; i < COUNT(sound); i++)
	{
		char *text;

		assert_null(key_rules_add(&rules, sound[i].text));
		assert_int_equal(rules.count, i + 1);
		assert_int_equal(rules.rule[i].kind, sound[i].kind);
		if (sound[i].argument != NULL)
		{
			assert_string_equal(rules.rule[i].argument, sound[i].argument);
		}
		text = key_rule_text(&rules.rule[i]);
		assert_string_equal(text, sound[i].text);
		free(text);
	}
	key_rules_free(&rules);
	assert_int_equal(rules.count, 0);
}

static void
test_bad_rules_say_why(void **state)
{
	static const char *const bad[] = {
		"",			 "attribute",	   "attribute:",	 "attributes:a", "Attribute:a",
		"json",		 "json:id",		   "json:id/x",		 "json:/a~",	 "json:/a~2",
		"json:/~/a", "message-id ",	   "message-id:7",	 "message_id",	 "data",
		" json:/id", "attribute:\xff", "json:/\xc0\x80", "json:~1"};
	struct key_rules rules = {.count = 0};

	(void) state;
	for (size_t i = 0; i < COUNT(bad); i++)
	{
		if (key_rules_add(&rules, bad[i]) == NULL)
		{
			fail_msg("taken: %s", bad[i]);
		}
	}
	assert_int_equal(rules.count, 0);
}

static void
test_rules_are_bounded(void **state)
{
	struct key_rules rules = {.count = 0};

	(void) state;
	for (int i = 0; i < KEY_RULES_MAX; i++)
	{
		assert_null(key_rules_add(&rules, "attribute:a"));
	}
	assert_non_null(key_rules_add(&rules, "attribute:a"));
	assert_int_equal(rules.count, KEY_RULES_MAX);
	key_rules_free(&rules);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules_are_parsed),
		cmocka_unit_test(test_bad_rules_say_why),
		cmocka_unit_test(test_rules_are_bounded),
	};

	return cmocka_run_group_tests_name("key_rules", tests, NULL, NULL);
}
