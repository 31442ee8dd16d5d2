/* SPDX-License-Identifier: PostgreSQL */
#include "scanned.h"

static void
test_sound_documents(void **state)
{
	static const char *const documents[] = {
		"null",
		"true",
		"false",
		"0",
		"-0",
		"-1.5e+10",
		"1E5",
		"0.0",
		"123456789012345678901234567890",
		"\"\"",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"",
		"\"\\ud83d\\ude00\"",
		"\"\xf0\x9f\x98\x80 \xc3\xa9 \xe2\x82\xac\"",
		"[]",
		"{}",
		" \t\r\n[ 1 , 2 ]\n",
		"{\"a\":{\"b\":[{},[],\"\"]}}",
		"{\"a\":1,\"a\":2}",
		"\"\\u0000\"",
		"\"\\ud800\"",
		"{\"\":\"\"}",
		"\"\x7f\"",
	};

	(void) state;
	for (size_t i = 0; i < COUNT(documents); i++)
	{
		if (!is_document(documents[i], strlen(documents[i])))
		{
			fail_msg("refused: %s", documents[i]);
		}
	}
}

static void
test_malformed_documents(void **state)
{
	static const char *const documents[] = {
		/* nothing, half of something, more than one thing */
		"", " ", "[", "{", "\"", "[1", "{\"a\"", "{\"a\":", "{\"a\":1", "\"\\", "\"\\u12", "[]]",
		"{}{}", "1 2", "null x", "{},", "[1]\xef\xbb\xbf", "\xef\xbb\xbf{}",
		/* what lax parsers take */
		"'a'", "{'a':1}", "{a:1}", "[1,]", "{\"a\":1,}", "[,1]", "[1,,2]", "NaN", "-NaN",
		"Infinity", "-Infinity", "nan", "inf", "True", "NULL", "nul", "truex", "/* */1", "// \n1",
		"#", "0x10", "01", "-01", "00", "+1", ".5", "5.", "1e", "1e+", "-", "--1", "1.e5", "1_000",
		"[1 2]", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{1:2}", "{\"a\":1:2}", "[1}", "{\"a\":1]",
		"undefined", "(1)", "<html></html>", "\"a\" \"b\"", "[\"a\":1]",
		/* escapes JSON does not know */
		"\"\\x41\"", "\"\\'\"", "\"\\0\"", "\"\\u\"", "\"\\u12G4\"", "\"\\U0041\"", "\"\\u+123\"",
		"\"\\ud800\\uZZZZ\"", "\"\\\n\"",
		/* raw control characters */
		"\"\n\"", "\"\t\"", "\"\x01\"", "\"\x1f\"", "[1]\x0b", "\x0c[1]",
		/* not UTF-8 */
		"\"\x80\"", "\"\xc3\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\""};

	(void) state;
	for (size_t i = 0; i < COUNT(documents); i++)
	{
		if (is_document(documents[i], strlen(documents[i])))
		{
			fail_msg("taken: %s", documents[i]);
		}
	}
	assert_false(is_document("\"\0\"", 3));
	assert_false(is_document("1\0", 2));
	assert_false(is_document("\0", 1));
}

/* Every sequence of two bytes, and the edges of those of three and four. */
static void
test_utf8(void **state)
{
	static const struct
	{
		const char *bytes;
		bool valid;
	} sequences[] = {
		{"\xe0\xa0\x80", true},
		{"\xe0\x9f\xbf", false},
		{"\xed\x9f\xbf", true},
		{"\xed\xa0\x80", false},
		{"\xed\xbf\xbf", false},
		{"\xee\x80\x80", true},
		{"\xef\xbf\xbf", true},
		{"\xef\xbf\xc0", false},
		{"\xe1\x80", false},
		{"\xe1\x80\x7f", false},
		{"\xf0\x90\x80\x80", true},
		{"\xf0\x8f\xbf\xbf", false},
		{"\xf4\x8f\xbf\xbf", true},
		{"\xf4\x90\x80\x80", false},
		{"\xf5\x80\x80\x80", false},
		{"\xf8\x88\x80\x80\x80", false},
		{"\xf1\x80\x80", false},
		{"\xf1\x80\x80\x41", false},
		{"\xf1\x80\x41\x80", false},
		{"\xfe", false},
		{"\xff", false},
		{"\xe2\x82", false},
		{"\xc3\xa9\xe2\x82\xac", true},
		{"\xc0\x80", false},
	};

	(void) state;
	for (size_t i = 0; i < COUNT(sequences); i++)
	{
		/* At each offset within a word of eight bytes. */
		for (int shift = 0; shift < 8; shift++)
		{
			char text[32];
			int size =
				snprintf(text, sizeof(text), "\"%.*s%s\"", shift, "abcdefgh", sequences[i].bytes);

			assert_int_equal(flaws_of(text, (size_t) size), sequences[i].valid ? 0 : FLAW_UTF8);
			assert_int_equal(is_document(text, (size_t) size), sequences[i].valid);
		}
	}
	for (int first = 0x80; first < 0x100; first++)
	{
		for (int second = 0; second < 0x100; second++)
		{
			const char text[] = {'"', (char) first, (char) second, '"'};
			bool valid = first >= 0xC2 && first <= 0xDF && second >= 0x80 && second <= 0xBF;

			if (second != '"' && second != '\\')
			{
				assert_int_equal(is_document(text, sizeof(text)), valid);
			}
		}
	}
}

/* A byte that begins a character it does not finish must not hide the quote behind it. */
static void
test_broken_utf8_hides_no_quote(void **state)
{
	static const char response[] = "{\"receivedMessages\":[\"\xe2\",\"\xf0\x90\",\"sound\"]}";
	struct scan_elements elements;
	struct scan_fault fault;

	(void) state;
	assert_true(scan_response(response, sizeof(response) - 1, &elements, &fault));
	assert_int_equal(elements.count, 3);
	assert_int_equal(elements.element[0].flaws, FLAW_UTF8);
	assert_int_equal(elements.element[1].flaws, FLAW_UTF8);
	assert_int_equal(elements.element[2].flaws, 0);
	scan_elements_free(&elements);
}

static void
test_depth_is_bounded(void **state)
{
	(void) state;
	for (size_t depth = SCAN_DEPTH_MAX - 1; depth <= SCAN_DEPTH_MAX + 1; depth++)
	{
		struct buffer text;

		buffer_init(&text, 1 << 20);
		append_times(&text, "[", depth);
		append_times(&text, "]", depth);
		assert_int_equal(is_document(text.bytes, text.size), depth <= SCAN_DEPTH_MAX);
		buffer_free(&text);
		append_times(&text, "{\"a\":", depth);
		append_times(&text, "1", 1);
		append_times(&text, "}", depth);
		assert_int_equal(is_document(text.bytes, text.size), depth <= SCAN_DEPTH_MAX);
		buffer_free(&text);
	}
}

/* What bounds the depth must not bound the length. */
static void
test_many_siblings_are_not_deep(void **state)
{
	struct buffer text;

	(void) state;
	buffer_init(&text, 1 << 20);
	append_times(&text, "[", 1);
	append_times(&text, "[{}],", SCAN_DEPTH_MAX * 2);
	append_times(&text, "[]]", 1);
	assert_true(is_document(text.bytes, text.size));
	buffer_free(&text);
}

static void
test_hostile_sizes_are_borne(void **state)
{
	static const char *const pieces[] = {"[",  "{\"a\":", "\"\\\\", "\\\"", "\"\\\"\",", "{},",
										 "[]", "\"",	  "\\",		"1,",	"\xf0\x90",	 "{\"\":"};
	unsigned flaws;

	(void) state;
	for (size_t i = 0; i < COUNT(pieces); i++)
	{
		struct buffer text;

		buffer_init(&text, 1 << 24);
		append_times(&text, "{\"receivedMessages\":[\"", 1);
		append_times(&text, pieces[i], 200000);
		assert_int_equal(scan(text.bytes, text.size, &flaws), -1);
		assert_false(is_document(text.bytes + 21, text.size - 21));
		buffer_free(&text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound_documents),
		cmocka_unit_test(test_malformed_documents),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_broken_utf8_hides_no_quote),
		cmocka_unit_test(test_depth_is_bounded),
		cmocka_unit_test(test_many_siblings_are_not_deep),
		cmocka_unit_test(test_hostile_sizes_are_borne),
	};

	return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
