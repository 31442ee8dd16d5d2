/* SPDX-License-Identifier: PostgreSQL */
#include "scanned.h"

static void
test_flaws(void **state)
{
	static const struct
	{
		const char *json;
		unsigned flaws;
	} values[] = {
		{"{\"a\":\"b\"}", 0},
		{"\"\\u0000\"", FLAW_NUL},
		{"\"a\\u0000b\"", FLAW_NUL},
		{"{\"\\u0000\":1}", FLAW_NUL},
		{"\"\\\\u0000\"", 0},
		{"\"\\\\\\u0000\"", FLAW_NUL},
		{"\"\\u00000\"", FLAW_NUL},
		{"\"\\u0001\"", 0},
		{"\"\\ud83d\\ude00\"", 0},
		{"\"\\uD83D\\uDE00\"", 0},
		{"\"\\ud800\\udc00\\udbff\\udfff\"", 0},
		{"\"\\ud800\"", FLAW_SURROGATE},
		{"\"\\udc00\"", FLAW_SURROGATE},
		{"\"\\ude00\\ud83d\"", FLAW_SURROGATE},
		{"\"\\ud83d\\ud83d\\ude00\"", FLAW_SURROGATE},
		{"\"\\ud83d \\ude00\"", FLAW_SURROGATE},
		{"\"\\ud83dude00\"", FLAW_SURROGATE},
		{"\"\\ud83d\\u0041\"", FLAW_SURROGATE},
		{"\"\\ud83d\\u0000\"", FLAW_SURROGATE | FLAW_NUL},
		{"\"\\ud83d\\n\"", FLAW_SURROGATE},
		{"\"\\ud83d\\\\ude00\"", FLAW_SURROGATE},
		{"\"\\ud7ff\\ue000\"", 0},
		{"\"\t\"", FLAW_CONTROL},
		{"NaN", FLAW_WORD},
		{"-Infinity", FLAW_WORD},
		{"01", FLAW_WORD},
		{"[1.]", FLAW_WORD},
		{"{\"a\":1,\"a\":1}", FLAW_DUPLICATE},
		{"{\"a\":1,\"b\":2,\"a\":3}", FLAW_DUPLICATE},
		{"{\"a\":1,\"\\u0061\":2}", FLAW_DUPLICATE},
		{"{\"\\u0061b\":1,\"a\\u0062\":2}", FLAW_DUPLICATE},
		{"{\"\\u00e9\":1,\"\xc3\xa9\":2}", FLAW_DUPLICATE},
		{"{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", FLAW_DUPLICATE},
		{"{\"a\\/b\":1,\"a/b\":2}", FLAW_DUPLICATE},
		{"{\"\":1,\"\":2}", FLAW_DUPLICATE},
		{"{\"a\":1,\"A\":2,\"a \":3,\"aa\":4,\"\":5}", 0},
		{"{\"a\":1,\"a\\u0000\":2}", FLAW_NUL},
		{"{\"\\ud800\":1,\"\\ud801\":2}", FLAW_SURROGATE},
		{"{\"\\ud800\":1,\"\\ud800\":2}", FLAW_SURROGATE | FLAW_DUPLICATE},
		{"{\"\\u00e9\":1,\"e\\u0301\":2}", 0},
		{"{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":1}]}", 0},
		{"{\"a\":{\"b\":1,\"b\":2}}", FLAW_DUPLICATE},
		{"[{\"x\":{\"a\":1}},{\"a\":{\"a\":{\"a\":1,\"a\":2}}}]", FLAW_DUPLICATE},
		{"{\"x\":{\"a\":1},\"a\":2,\"y\":{\"a\":1},\"a\":3}", FLAW_DUPLICATE},
		{"{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"j\":10}", 0},
		{"{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"\\u0061\":10}",
		 FLAW_DUPLICATE},
	};

	(void) state;
	for (size_t i = 0; i < COUNT(values); i++)
	{
		unsigned flaws = flaws_of(values[i].json, strlen(values[i].json));
		struct slice slice = {values[i].json, strlen(values[i].json)};

		if (flaws != values[i].flaws || scan_flaws(&slice) != flaws)
		{
			fail_msg("flaws %#x, expected %#x: %s", flaws, values[i].flaws, values[i].json);
		}
	}
}

static void
test_each_flaw_has_its_words(void **state)
{
	(void) state;
	assert_null(scan_flaw_text(0));
	for (unsigned flaw = FLAW_NUL; flaw <= FLAW_CROWDED; flaw <<= 1)
	{
		assert_non_null(scan_flaw_text(flaw));
	}
	assert_string_equal(scan_flaw_text(FLAW_NUL | FLAW_UTF8), scan_flaw_text(FLAW_UTF8));
}

static void
test_slices_are_exact(void **state)
{
	static const char response[] = "\n{ \"other\" : [ { \"ackId\" : \"no\" } ] ,\n"
								   "\"receivedMessages\" : [ {\"a\":\"]},{\"} ,\n"
								   "\t\"x\\\"\" , 12 , [ ] ] , \"last\":null } \n";
	static const char *const slices[] = {"{\"a\":\"]},{\"}", "\"x\\\"\"", "12", "[ ]"};
	struct scan_elements elements;
	struct scan_fault fault;

	(void) state;
	assert_true(scan_response(response, sizeof(response) - 1, &elements, &fault));
	assert_int_equal(elements.count, COUNT(slices));
	for (size_t i = 0; i < COUNT(slices); i++)
	{
		assert_int_equal(elements.element[i].slice.length, strlen(slices[i]));
		assert_memory_equal(elements.element[i].slice.start, slices[i], strlen(slices[i]));
		assert_int_equal(elements.element[i].flaws, 0);
	}
	scan_elements_free(&elements);
}

static void
test_responses_without_messages(void **state)
{
	static const char *const responses[] = {
		"",
		" ",
		"\n",
		"{}",
		"{\n}\n",
		"{\"receivedMessages\":[]}",
		"{\"receivedMessages\":[ ]}",
		"{\"receivedMessages\":null}",
		"{\"other\":[1,{\"receivedMessages\":[2]}]}",
		"{\"receivedmessages\":[1],\"receivedMessages\\u0000\":[1]}",
		"{\"a\":1,\"a\":2,\"b\":\"\\u0000\\ud800\"}",
	};
	unsigned flaws;

	(void) state;
	for (size_t i = 0; i < COUNT(responses); i++)
	{
		if (scan(responses[i], strlen(responses[i]), &flaws) != 0)
		{
			fail_msg("not empty: %s", responses[i]);
		}
	}
}

static void
test_garbage_responses(void **state)
{
	static const char *const responses[] = {
		"[]",
		"null",
		"\"\"",
		"1",
		"<html><body>502</body></html>",
		"\x1f\x8b\x08",
		"{}x",
		"{}{}",
		"{\"receivedMessages\":[1]}x",
		"{\"receivedMessages\":[1],}",
		"{\"receivedMessages\":[1,]}",
		"{\"receivedMessages\":[1 2]}",
		"{\"receivedMessages\":[1]",
		"{\"receivedMessages\":[1}",
		"{\"receivedMessages\":{}}",
		"{\"receivedMessages\":\"x\"}",
		"{\"receivedMessages\":nullx}",
		"{\"receivedMessages\":1}",
		"{\"receivedMessages\":}",
		"{\"receivedMessages\"}",
		"{\"receivedMessages\":[1],\"receivedMessages\":[1]}",
		"{\"receivedMessages\":[1],\"received\\u004dessages\":[1]}",
		"{\"receivedMessages\":null,\"receivedMessages\":[1]}",
		"{\"receivedMessages\":[],\"receivedMessages\":null}",
		"{\"receivedMessages\":[{\"ackId\":'x'}]}",
		"{\"receivedMessages\":[\"\\x\"]}",
		"{\"receivedMessages\":[1],\"other\":NaN}",
		"{\"receivedMessages\":[1],\"other\":\"\xff\"}",
		"{\"receivedMessages\":[1],\"\xff\":1}",
		"{\"receivedMessages\":[1],\"other\":\"\n\"}",
		"\xef\xbb\xbf{}",
	};
	unsigned flaws;

	(void) state;
	for (size_t i = 0; i < COUNT(responses); i++)
	{
		if (scan(responses[i], strlen(responses[i]), &flaws) != -1)
		{
			fail_msg("taken: %s", responses[i]);
		}
	}
	assert_int_equal(scan("{}\0", 3, &flaws), -1);
}

/* Objects of 2 to NAMES_MAX + 1 names, with and without one name repeated at any distance. */
static void
test_many_names(void **state)
{
	static const size_t counts[] = {2, 7, 8, 9, 10, 100, NAMES_MAX - 1, NAMES_MAX, NAMES_MAX + 1};

	(void) state;
	for (size_t i = 0; i < COUNT(counts); i++)
	{
		unsigned crowded = counts[i] > NAMES_MAX ? FLAW_CROWDED : 0;

		for (size_t repeated = 0; repeated < counts[i]; repeated += counts[i] / 2)
		{
			struct buffer text;
			char member[64];

			buffer_init(&text, 1 << 20);
			for (size_t name = 0; name < counts[i]; name++)
			{
				size_t number = name == counts[i] - 1 && repeated > 0 ? repeated - 1 : name;

				snprintf(member, sizeof(member), "%s\"%s%zu\":0", name == 0 ? "{" : ",",
						 name % 3 == 0 ? "\\u0078" : "x", number * 7919 % 65537);
				append_times(&text, member, 1);
			}
			append_times(&text, "}", 1);
			if (crowded)
			{
				assert_true(flaws_of(text.bytes, text.size) & FLAW_CROWDED);
			}
			else
			{
				assert_int_equal(flaws_of(text.bytes, text.size),
								 repeated > 0 ? FLAW_DUPLICATE : 0);
			}
			buffer_free(&text);
		}
	}
}

static void
test_cut_short_is_garbage_or_empty(void **state)
{
	static const char response[] =
		"\n{\"receivedMessages\":[{\"ackId\":\"a\\u00e9\\n\",\"message\":{\"data\":\"Zm8=\","
		"\"attributes\":{\"k\":\"\xc3\xa9\\ud83d\\ude00\"}},\"deliveryAttempt\":3},"
		"{\"x\":[true,false,null,-1.5e+3]}],\"more\":{}}\n";
	unsigned flaws;

	(void) state;
	for (size_t size = 0; size < sizeof(response) - 2; size++)
	{
		assert_int_equal(scan(response, size, &flaws), size < 2 ? 0 : -1);
	}
	assert_int_equal(scan(response, sizeof(response) - 1, &flaws), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flaws),
		cmocka_unit_test(test_each_flaw_has_its_words),
		cmocka_unit_test(test_slices_are_exact),
		cmocka_unit_test(test_responses_without_messages),
		cmocka_unit_test(test_garbage_responses),
		cmocka_unit_test(test_many_names),
		cmocka_unit_test(test_cut_short_is_garbage_or_empty),
	};

	return cmocka_run_group_tests_name("slices", tests, NULL, NULL);
}
