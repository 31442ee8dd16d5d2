/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "key.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Rules from a list of texts, ended by NULL. */
static struct key_rules
make_rules(const char *const *texts)
{
	struct key_rules rules = {.count = 0};

	for (; *texts != NULL; texts++)
	{
		assert_null(key_rules_add(&rules, *texts));
	}
	return rules;
}

static struct key
find(const char *const *rule_texts, const struct key_fields *fields)
{
	struct key_rules rules = make_rules(rule_texts);
	struct key key = key_find(&rules, fields);

	key_rules_free(&rules);
	assert_int_equal(key.outcome == KEY_FOUND, key.text != NULL);
	assert_int_equal(key.outcome == KEY_FOUND, key.detail == NULL);
	return key;
}

static void
free_key(struct key *key)
{
	free(key->text);
	free(key->detail);
}

/* Expects a key, or an outcome whose detail is "expected". */
static void
expect(const char *const *rules, const struct key_fields *fields, enum key_outcome outcome,
	   const char *expected)
{
	struct key key = find(rules, fields);
	const char *found = key.text != NULL ? key.text : key.detail;

	if (key.outcome != outcome || (expected != NULL && strcmp(found, expected) != 0))
	{
		fail_msg("%s: outcome %d \"%s\", expected %d \"%s\"", rules[0], (int) key.outcome, found,
				 (int) outcome, expected);
	}
	free_key(&key);
}

static struct key_fields
with_attributes(const char *json)
{
	return (struct key_fields){.attributes = {json, strlen(json)}, .message_id = "7"};
}

static struct key_fields
with_data(const char *data, size_t size)
{
	return (struct key_fields){
		.data = (const unsigned char *) data, .data_size = size, .message_id = "7"};
}

static void
test_attribute(void **state)
{
	static const struct
	{
		const char *attributes;
		enum key_outcome outcome;
		const char *expected;
	} cases[] = {
		{"{\"k\":\"order-1\"}", KEY_FOUND, "order-1"},
		{"{ \"j\" : \"x\" , \"k\" : \" order 1 \" }", KEY_FOUND, " order 1 "},
		{"{\"k\":\"\\u00e9\\n\\\"\"}", KEY_FOUND, "\xc3\xa9\n\""},
		{"{\"\\u006b\":\"v\"}", KEY_FOUND, "v"},
		{"{\"k\":\"\\ud83d\\ude00\"}", KEY_FOUND, "\xf0\x9f\x98\x80"},
		{"{\"k\":\"\\ufffd\"}", KEY_FOUND, "\xef\xbf\xbd"},
		{"{\"k\":\"\"}", KEY_ABSENT, "attribute:k is empty"},
		{"{}", KEY_ABSENT, "attribute:k is absent"},
		{"{\"K\":\"a\",\"k \":\"b\",\"kk\":\"c\",\"\":\"d\"}", KEY_ABSENT, NULL},
		{"{\"k\":\"a\\u0000b\"}", KEY_REFUSED,
		 "attribute:k holds U+0000, which PostgreSQL cannot store"},
		{"{\"k\":\"\\u0000\"}", KEY_REFUSED, NULL},
		{"{\"k\":\"\\ud800\"}", KEY_REFUSED,
		 "attribute:k holds half of a surrogate pair, which PostgreSQL cannot store"},
		{"{\"k\":\"\xff\"}", KEY_REFUSED, "attribute:k is not sound text"},
		{"{\"k\":\"a\",\"k\":\"a\"}", KEY_REFUSED, "attribute:k occurs twice"},
		{"{\"k\":1}", KEY_REFUSED, "attribute:k is not a string"},
		{"{\"k\\u0000\":\"a\"}", KEY_ABSENT, NULL},
		{"{\"other\":\"\\u0000\",\"k\":\"a\"}", KEY_FOUND, "a"},
	};
	static const char *const rules[] = {"attribute:k", NULL};
	const struct key_fields none = {.message_id = "7"};
	const struct key_fields lost = {.attributes_lost = true, .message_id = "7"};

	(void) state;
	for (size_t i = 0; i < COUNT(cases); i++)
	{
		struct key_fields fields = with_attributes(cases[i].attributes);

		expect(rules, &fields, cases[i].outcome, cases[i].expected);
	}
	expect(rules, &none, KEY_ABSENT, "attribute:k is absent");
	expect(rules, &lost, KEY_REFUSED, NULL);
}

/* The document and the pointers of RFC 6901, section 5, with strings for its numbers. */
static void
test_pointers_of_the_standard(void **state)
{
	static const char document[] =
		"{\"foo\":[\"bar\",\"baz\"],\"\":\"v0\",\"a/b\":\"v1\",\"c%d\":\"v2\",\"e^f\":\"v3\","
		"\"g|h\":\"v4\",\"i\\\\j\":\"v5\",\"k\\\"l\":\"v6\",\" \":\"v7\",\"m~n\":\"v8\"}";
	static const char *const pointers[][2] = {
		{"json:/foo/0", "bar"}, {"json:/foo/1", "baz"}, {"json:/", "v0"},	  {"json:/a~1b", "v1"},
		{"json:/c%d", "v2"},	{"json:/e^f", "v3"},	{"json:/g|h", "v4"},  {"json:/i\\j", "v5"},
		{"json:/k\"l", "v6"},	{"json:/ ", "v7"},		{"json:/m~0n", "v8"},
	};
	struct key_fields fields = with_data(document, sizeof(document) - 1);

	(void) state;
	for (size_t i = 0; i < COUNT(pointers); i++)
	{
		const char *const rules[] = {pointers[i][0], NULL};

		expect(rules, &fields, KEY_FOUND, pointers[i][1]);
	}
}

static const struct
{
	const char *rule;
	const char *data;
	enum key_outcome outcome;
	const char *expected;
} pointer_cases[] = {
	{"json:", "\"whole\"", KEY_FOUND, "whole"},
	{"json:", " 17 ", KEY_FOUND, "17"},
	{"json:/id", "{\"id\":\"a\"}", KEY_FOUND, "a"},
	{"json:/id", "{\"i\\u0064\":\"a\"}", KEY_FOUND, "a"},
	{"json:/a/b/2/c", "{\"a\":{\"b\":[0,[],{\"c\":\"deep\"}]}}", KEY_FOUND, "deep"},
	{"json:/~01", "{\"~1\":\"a\",\"/\":\"b\"}", KEY_FOUND, "a"},
	{"json:/a//b", "{\"a\":{\"\":{\"b\":\"x\"}}}", KEY_FOUND, "x"},
	{"json:/id", "{\"x\":\"\\u0000\",\"id\":\"a\"}", KEY_FOUND, "a"},
	{"json:/id", "{\"x\":1,\"x\":2,\"id\":\"a\"}", KEY_FOUND, "a"},
	{"json:/0", "{\"0\":\"a\"}", KEY_FOUND, "a"},
	{"json:/id", "{\"id\":\"\"}", KEY_ABSENT, NULL},
	{"json:/id", "{\"ID\":\"a\"}", KEY_ABSENT, "json:/id is absent"},
	{"json:/id", "{\"id\":null}", KEY_ABSENT, NULL},
	{"json:/id", "{\"id\":true}", KEY_ABSENT, NULL},
	{"json:/id", "{\"id\":{}}", KEY_ABSENT, NULL},
	{"json:/id", "{\"id\":[\"a\"]}", KEY_ABSENT, NULL},
	{"json:/id/x", "{\"id\":\"a\"}", KEY_ABSENT, NULL},
	{"json:/id/", "{\"id\":\"a\"}", KEY_ABSENT, NULL},
	{"json:/id", "[\"a\"]", KEY_ABSENT, NULL},
	/* array indexes */
	{"json:/1", "[\"a\",\"b\"]", KEY_FOUND, "b"},
	{"json:/2", "[\"a\",\"b\"]", KEY_ABSENT, NULL},
	{"json:/0", "[]", KEY_ABSENT, NULL},
	{"json:/-", "[\"a\"]", KEY_ABSENT, NULL},
	{"json:/-0", "[\"a\"]", KEY_ABSENT, NULL},
	{"json:/-1", "[\"a\",\"b\"]", KEY_ABSENT, NULL},
	{"json:/00", "[\"a\"]", KEY_ABSENT, NULL},
	{"json:/01", "[\"a\",\"b\"]", KEY_ABSENT, NULL},
	{"json:/1e0", "[\"a\",\"b\"]", KEY_ABSENT, NULL},
	{"json:/+1", "[\"a\",\"b\"]", KEY_ABSENT, NULL},
	{"json:/ 1", "[\"a\",\"b\"]", KEY_ABSENT, NULL},
	{"json:/", "[\"a\"]", KEY_ABSENT, NULL},
	{"json:/999999999", "[\"a\"]", KEY_ABSENT, NULL},
	{"json:/18446744073709551616", "[\"a\"]", KEY_ABSENT, NULL},
	/* integers, in the form they are written in */
	{"json:/n", "{\"n\":0}", KEY_FOUND, "0"},
	{"json:/n", "{\"n\":-1}", KEY_FOUND, "-1"},
	{"json:/n", "{\"n\":999999999999999999}", KEY_FOUND, "999999999999999999"},
	{"json:/n", "{\"n\":-999999999999999999}", KEY_FOUND, "-999999999999999999"},
	{"json:/n", "{\"n\":1000000000000000000}", KEY_ABSENT, NULL},
	{"json:/n", "{\"n\":-1000000000000000000}", KEY_ABSENT, NULL},
	{"json:/n", "{\"n\":18446744073709551616}", KEY_ABSENT, NULL},
	{"json:/n", "{\"n\":-0}", KEY_ABSENT, NULL},
	{"json:/n", "{\"n\":1.0}", KEY_ABSENT, NULL},
	{"json:/n", "{\"n\":1e3}", KEY_ABSENT, NULL},
	{"json:/n", "{\"n\":1E0}", KEY_ABSENT, NULL},
	{"json:/n", "{\"n\":01}", KEY_ABSENT, "json:/n is absent, as the payload is not JSON"},
	/* ambiguous on the way, or not storable */
	{"json:/id", "{\"id\":\"a\",\"id\":\"a\"}", KEY_REFUSED, "json:/id occurs twice"},
	{"json:/id", "{\"id\":\"a\",\"\\u0069d\":\"b\"}", KEY_REFUSED, NULL},
	{"json:/a/id", "{\"a\":{\"id\":\"x\"},\"a\":{\"id\":\"y\"}}", KEY_REFUSED, NULL},
	{"json:/id", "{\"id\":\"\",\"id\":\"b\"}", KEY_REFUSED, NULL},
	{"json:/id", "{\"id\":\"a\\u0000b\"}", KEY_REFUSED,
	 "json:/id holds U+0000, which PostgreSQL cannot store"},
	{"json:/id", "{\"id\":\"\\udc00\"}", KEY_REFUSED, NULL},
	/* no JSON */
	{"json:/id", "", KEY_ABSENT, "json:/id is absent, as the payload is not JSON"},
	{"json:/id", "id", KEY_ABSENT, NULL},
	{"json:/id", "{\"id\":\"a\"", KEY_ABSENT, NULL},
	{"json:/id", "{\"id\":\"a\"}x", KEY_ABSENT, NULL},
	{"json:/id", "{'id':'a'}", KEY_ABSENT, NULL},
	{"json:/id", "{\"id\":\"a\",}", KEY_ABSENT, NULL},
	{"json:/id", "{\"id\":\"a\",\"x\":NaN}", KEY_ABSENT, NULL},
	{"json:/id", "{\"id\":\"a\xff\"}", KEY_ABSENT, NULL},
	{"json:/id", "{\"id\":\"a\",\"x\":\"\xc0\x80\"}", KEY_ABSENT, NULL},
	{"json:/id", "{\"id\":\"a\nb\"}", KEY_ABSENT, NULL},
	{"json:/id", "\xef\xbb\xbf{\"id\":\"a\"}", KEY_ABSENT, NULL},
};

static void
test_pointer(void **state)
{
	static const char *const id_rule[] = {"json:/id", NULL};
	const struct key_fields lost = {.data_lost = true, .message_id = "7"};
	const struct key_fields none = {.message_id = "7"};
	struct key_fields nul = with_data("{\"id\":\"a\"}\0", 11);

	(void) state;
	for (size_t i = 0; i < COUNT(pointer_cases); i++)
	{
		const char *const rules[] = {pointer_cases[i].rule, NULL};
		struct key_fields fields = with_data(pointer_cases[i].data, strlen(pointer_cases[i].data));

		expect(rules, &fields, pointer_cases[i].outcome, pointer_cases[i].expected);
	}
	expect(id_rule, &lost, KEY_REFUSED, NULL);
	expect(id_rule, &none, KEY_ABSENT, NULL);
	expect(id_rule, &nul, KEY_ABSENT, NULL);
}

static void
test_message_id(void **state)
{
	static const char *const rules[] = {"message-id", NULL};
	const struct key_fields fields = {.message_id = "1022"};
	const struct key_fields lost = {.message_id = NULL};
	struct key key = find(rules, &fields);

	(void) state;
	assert_string_equal(key.text, "mid:1022");
	assert_true(key.from_message_id);
	free_key(&key);
	expect(rules, &lost, KEY_REFUSED, "message-id cannot be read");
}

static void
test_first_hit_wins(void **state)
{
	static const char *const rules[] = {"attribute:k", "json:/id", "message-id", NULL};
	struct key_fields fields = with_data("{\"id\":\"from-json\"}", 18);
	struct key key;

	(void) state;
	fields.attributes = (struct slice){"{\"k\":\"from-attribute\"}", 22};
	expect(rules, &fields, KEY_FOUND, "from-attribute");
	fields.attributes = (struct slice){"{\"k\":\"\"}", 8};
	expect(rules, &fields, KEY_FOUND, "from-json");
	fields.data_size = 17;
	key = find(rules, &fields);
	assert_string_equal(key.text, "mid:7");
	assert_true(key.from_message_id);
	free_key(&key);
}

/* What cannot be a key must not make another rule's key stand for the message. */
static void
test_refusal_ends_the_search(void **state)
{
	static const char *const rules[] = {"attribute:k", "json:/id", "message-id", NULL};
	struct key_fields fields = with_data("{\"id\":\"from-json\"}", 18);

	(void) state;
	fields.attributes = (struct slice){"{\"k\":\"\\u0000\"}", 14};
	expect(rules, &fields, KEY_REFUSED, NULL);
	fields.attributes = (struct slice){"{}", 2};
	fields.data_lost = true;
	expect(rules, &fields, KEY_REFUSED, NULL);
	fields.attributes = (struct slice){"{\"k\":\"a\"}", 9};
	expect(rules, &fields, KEY_FOUND, "a");
}

static void
test_every_rule_says_why_not(void **state)
{
	static const char *const rules[] = {"attribute:a", "attribute:b", "json:/id", NULL};
	static const char *const no_rules[] = {NULL};
	struct key_fields fields = with_attributes("{\"a\":\"\"}");

	(void) state;
	expect(rules, &fields, KEY_ABSENT,
		   "attribute:a is empty; attribute:b is absent; "
		   "json:/id is absent, as the payload is not JSON");
	fields.attributes = (struct slice){NULL, 0};
	expect(no_rules, &fields, KEY_ABSENT, "there is no rule");
}

static void
test_length_is_bounded(void **state)
{
	static const char *const by_attribute[] = {"attribute:k", NULL};
	static const char *const by_id[] = {"message-id", NULL};

	(void) state;
	for (int size = 1; size <= KEY_MAX_BYTES + 2; size++)
	{
		char attributes[KEY_MAX_BYTES + 16];
		char id[KEY_MAX_BYTES + 16];
		enum key_outcome outcome = size <= KEY_MAX_BYTES ? KEY_FOUND : KEY_REFUSED;
		struct key_fields fields;

		snprintf(attributes, sizeof(attributes), "{\"k\":\"%0*d\"}", size, 0);
		fields = with_attributes(attributes);
		expect(by_attribute, &fields, outcome,
			   size == KEY_MAX_BYTES + 1 ? "key of 1025 bytes, at most 1024" : NULL);
		snprintf(id, sizeof(id), "%0*d", size, 0);
		fields.message_id = id;
		expect(by_id, &fields, size + 4 <= KEY_MAX_BYTES ? KEY_FOUND : KEY_REFUSED, NULL);
	}
}

/* The bound is one of bytes, of what the escapes stand for. */
static void
test_length_counts_bytes(void **state)
{
	static const char *const rules[] = {"attribute:k", NULL};
	char attributes[8192] = "{\"k\":\"";

	(void) state;
	for (int i = 0; i < 512; i++)
	{
		strcat(attributes, "\\u00e9");
	}
	for (int more = 0; more < 2; more++)
	{
		char closed[8200];
		struct key_fields fields;

		snprintf(closed, sizeof(closed), "%s%s\"}", attributes, more ? "a" : "");
		fields = with_attributes(closed);
		expect(rules, &fields, more ? KEY_REFUSED : KEY_FOUND, NULL);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attribute),
		cmocka_unit_test(test_pointers_of_the_standard),
		cmocka_unit_test(test_pointer),
		cmocka_unit_test(test_message_id),
		cmocka_unit_test(test_first_hit_wins),
		cmocka_unit_test(test_refusal_ends_the_search),
		cmocka_unit_test(test_every_rule_says_why_not),
		cmocka_unit_test(test_length_is_bounded),
		cmocka_unit_test(test_length_counts_bytes),
	};

	return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
