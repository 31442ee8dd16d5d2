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

#include "buffer.h"
#include "names.h"
#include "scan.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Text in memory of exactly its size, so that a sanitizer sees a byte read behind it. */
struct text
{
	char *bytes;
	size_t size;
};

static struct text
exact_text(const char *bytes, size_t size)
{
	struct text text = {malloc(size > 0 ? size : 1), size};

	assert_non_null(text.bytes);
	memcpy(text.bytes, bytes, size);
	return text;
}

static bool
is_document(const char *bytes, size_t size)
{
	struct text text = exact_text(bytes, size);
	struct slice root;
	struct scan_fault fault = {0};
	bool sound = scan_document(text.bytes, text.size, &root, &fault);

	assert_true(sound || (fault.what != NULL && fault.offset <= size));
	free(text.bytes);
	return sound;
}

/* How many elements, or -1; the flaws of the first one in "flaws". */
static int
scan(const char *bytes, size_t size, unsigned *flaws)
{
	struct text text = exact_text(bytes, size);
	struct scan_elements elements;
	struct scan_fault fault = {0};
	int count = -1;

	*flaws = 0;
	if (scan_response(text.bytes, text.size, &elements, &fault))
	{
		count = (int) elements.count;
		*flaws = count > 0 ? elements.element[0].flaws : 0;
		scan_elements_free(&elements);
	}
	else
	{
		assert_non_null(fault.what);
		assert_true(fault.offset <= size);
		assert_null(elements.element);
	}
	free(text.bytes);
	return count;
}

/* The flaws of the value "json" as the only element of a response. */
static unsigned
flaws_of(const char *json, size_t size)
{
	static const char before[] = "{\"receivedMessages\":[";
	struct buffer response;
	unsigned flaws;

	buffer_init(&response, 1 << 24);
	assert_true(buffer_append(&response, before, sizeof(before) - 1));
	assert_true(buffer_append(&response, json, size));
	assert_true(buffer_append(&response, "]}", 2));
	if (scan(response.bytes, response.size, &flaws) != 1)
	{
		fail_msg("not one element: %s", json);
	}
	buffer_free(&response);
	return flaws;
}

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

/* Appends "piece" so many times. */
static void
append_times(struct buffer *buffer, const char *piece, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		assert_true(buffer_append(buffer, piece, strlen(piece)));
	}
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
		cmocka_unit_test(test_sound_documents),
		cmocka_unit_test(test_malformed_documents),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_broken_utf8_hides_no_quote),
		cmocka_unit_test(test_flaws),
		cmocka_unit_test(test_each_flaw_has_its_words),
		cmocka_unit_test(test_slices_are_exact),
		cmocka_unit_test(test_responses_without_messages),
		cmocka_unit_test(test_garbage_responses),
		cmocka_unit_test(test_depth_is_bounded),
		cmocka_unit_test(test_many_siblings_are_not_deep),
		cmocka_unit_test(test_hostile_sizes_are_borne),
		cmocka_unit_test(test_many_names),
		cmocka_unit_test(test_cut_short_is_garbage_or_empty),
	};

	return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
