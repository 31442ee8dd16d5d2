/* SPDX-License-Identifier: PostgreSQL */
#include <fcntl.h>
#include <limits.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "capture.h"
#include "log.h"
#include "memory.h"

/* The line of one event with a single text field, without the time stamp in front. */
static char *
line_with(enum log_format format, const char *value)
{
	struct capture capture = capture_start(STDERR_FILENO);
	char *text, *rest;

	log_configure(format, LOG_DEBUG);
	log_event(LOG_INFO, "e", "v", LOG_TEXT, value, NULL);
	text = capture_end(&capture);
	rest = strstr(text, format == LOG_JSON ? "\"level\"" : "level=");
	assert_non_null(rest);
	rest = memory_copy_text(rest);
	free(text);
	return rest;
}

static void
expect_logfmt(const char *value, const char *expected)
{
	char *line = line_with(LOG_LOGFMT, value);
	char *whole = memory_format("level=info event=e%s\n", expected);

	assert_string_equal(line, whole);
	free(whole);
	free(line);
}

static void
expect_json(const char *value, const char *expected)
{
	char *line = line_with(LOG_JSON, value);
	char *whole = memory_format("\"level\":\"info\",\"event\":\"e\"%s}\n", expected);

	assert_string_equal(line, whole);
	free(whole);
	free(line);
}

static void
test_logfmt_quotes_what_needs_it(void **state)
{
	(void) state;
	expect_logfmt("plain", " v=plain");
	expect_logfmt("projects/p/subscriptions/s", " v=projects/p/subscriptions/s");
	expect_logfmt("", " v=\"\"");
	expect_logfmt("two words", " v=\"two words\"");
	expect_logfmt("a=b", " v=\"a=b\"");
	expect_logfmt("say \"x\"", " v=\"say \\\"x\\\"\"");
	expect_logfmt("c:\\d", " v=\"c:\\\\d\"");
	expect_logfmt("gr\xC3\xBC\xC3\x9F", " v=gr\xC3\xBC\xC3\x9F");
	expect_logfmt(NULL, "");
}

static void
test_no_value_can_forge_a_line(void **state)
{
	(void) state;
	expect_logfmt("x\nlevel=error event=forged", " v=\"x\\nlevel=error event=forged\"");
	expect_logfmt("\r\t\x01\x1b\x7f", " v=\"\\r\\t\\u0001\\u001b\\u007f\"");
	expect_logfmt("\xC2\x9B"
				  "31m",
				  " v=\"\\u009b31m\"");
	expect_json("x\n\"},{\"level", ",\"v\":\"x\\n\\\"},{\\\"level\"");
}

static void
test_invalid_utf8_is_replaced(void **state)
{
	static const char *const bad[] = {
		"\x80", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8", "\xE2\x82",
	};
	static const char *const expected[] = {
		"\\ufffd",
		"\\ufffd\\ufffd",
		"\\ufffd\\ufffd\\ufffd",
		"\\ufffd\\ufffd\\ufffd",
		"\\ufffd\\ufffd\\ufffd\\ufffd",
		"\\ufffd",
		"\\ufffd\\ufffd",
	};

	(void) state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		char *json = memory_format(",\"v\":\"%s\"", expected[i]);
		char *logfmt = memory_format(" v=\"%s\"", expected[i]);

		expect_json(bad[i], json);
		expect_logfmt(bad[i], logfmt);
		free(json);
		free(logfmt);
	}
	expect_json("\xF0\x9F\x92\xB6", ",\"v\":\"\xF0\x9F\x92\xB6\"");
}

static void
test_json_gives_the_value_back(void **state)
{
	char value[256];
	char *line, *whole;
	struct json_object *object, *got;

	(void) state;
	for (size_t i = 0; i < 127; i++)
	{
		value[i] = (char) (i + 1);
	}
	value[127] = '\0';
	line = line_with(LOG_JSON, value);
	whole = memory_format("{%s", line);
	object = json_tokener_parse(whole);
	assert_non_null(object);
	assert_true(json_object_object_get_ex(object, "v", &got));
	assert_string_equal(json_object_get_string(got), value);
	json_object_put(object);
	free(whole);
	free(line);
}

static void
test_head_and_numbers(void **state)
{
	struct capture capture = capture_start(STDERR_FILENO);
	regex_t pattern;
	char *text;

	(void) state;
	log_configure(LOG_LOGFMT, LOG_DEBUG);
	log_event(LOG_WARNING, "pull_failed", "status", LOG_INT, (int64_t) -503, "after", LOG_SECONDS,
			  (int64_t) 61005, "skew", LOG_SECONDS, (int64_t) -1500, "min", LOG_INT, INT64_MIN,
			  "least", LOG_SECONDS, INT64_MIN, "none", LOG_COUNT, INT64_C(0), "some", LOG_COUNT,
			  INT64_C(2), NULL);
	text = capture_end(&capture);
	assert_int_equal(
		regcomp(&pattern,
				"^ts=20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}Z "
				"level=warning event=pull_failed status=-503 after=61\\.005 skew=-1\\.500 "
				"min=-9223372036854775808 least=-9223372036854775\\.808 some=2\n$",
				REG_EXTENDED | REG_NOSUB),
		0);
	assert_int_equal(regexec(&pattern, text, 0, NULL, 0), 0);
	regfree(&pattern);
	free(text);
}

static void
test_level_filters(void **state)
{
	struct capture capture = capture_start(STDERR_FILENO);
	char *text;

	(void) state;
	log_configure(LOG_LOGFMT, LOG_WARNING);
	log_event(LOG_INFO, "quiet", NULL);
	log_event(LOG_ERROR, "loud", NULL);
	assert_false(log_wants(LOG_INFO));
	assert_true(log_wants(LOG_WARNING));
	text = capture_end(&capture);
	assert_null(strstr(text, "quiet"));
	assert_non_null(strstr(text, "level=error event=loud\n"));
	free(text);
}

/* A value of 'count' times 'unit', and whether it came through whole. */
static void
expect_length(const char *unit, size_t count, bool whole)
{
	size_t size = strlen(unit);
	char *value = memory_new(size * count + 1);
	char *line;

	for (size_t i = 0; i < count; i++)
	{
		memcpy(value + i * size, unit, size);
	}
	line = line_with(LOG_LOGFMT, value);
	assert_int_equal(strstr(line, value) != NULL, whole);
	assert_int_equal(strstr(line, "\xE2\x80\xA6") != NULL, !whole);
	assert_true(strlen(line) <= strlen("level=info event=e v=\"\"\n") + 1024);
	free(line);
	free(value);
}

static void
test_long_values_are_cut_and_marked(void **state)
{
	(void) state;
	expect_length("k", 1024, true);
	expect_length("k", 1025, false);
	expect_length("k", 100000, false);
	expect_length("\xC3\xBC", 512, true);
	expect_length("\xC3\xBC", 513, false);
}

static void
test_a_line_fits_a_pipe(void **state)
{
	struct capture capture;
	char value[2000];
	char *text;

	(void) state;
	memset(value, '\n', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	for (int format = LOG_LOGFMT; format <= LOG_JSON; format++)
	{
		capture = capture_start(STDERR_FILENO);
		log_configure((enum log_format) format, LOG_DEBUG);
		log_event(LOG_INFO, "e", "a", LOG_TEXT, value, "b", LOG_TEXT, value, "c", LOG_TEXT, value,
				  "d", LOG_TEXT, value, "f", LOG_TEXT, value, "g", LOG_INT, (int64_t) 7, NULL);
		text = capture_end(&capture);
		assert_true(strlen(text) <= PIPE_BUF);
		assert_int_equal(text[strlen(text) - 1], '\n');
		assert_non_null(strstr(text, format == LOG_JSON ? ",\"g\":7,\"fields_left_out\":2}\n"
														: " g=7 fields_left_out=2\n"));
		free(text);
	}
}

/* Everything that is in a pipe now; the pipe must not be empty. */
static char *
drain(int from)
{
	size_t room = 1 << 20;
	char *bytes = memory_new(room + 1);
	ssize_t got = read(from, bytes, room);

	assert_true(got > 0);
	return bytes;
}

static void
test_a_full_pipe_drops_and_counts(void **state)
{
	int ends[2];
	int saved = dup(STDERR_FILENO);
	int flags_before, flags_after;
	int dropped = 10000;
	char *flood, *later, *report, *after;

	(void) state;
	assert_int_equal(pipe(ends), 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	flags_before = fcntl(ends[1], F_GETFL);
	/* Of other levels so many lines of one event are not written. */
	log_configure(LOG_LOGFMT, LOG_DEBUG);
	for (int i = 0; i < 10000; i++)
	{
		log_event(LOG_DEBUG, "flood", "i", LOG_INT, (int64_t) i, NULL);
	}
	flags_after = fcntl(ends[1], F_GETFL);
	flood = drain(ends[0]);
	log_event(LOG_INFO, "after", NULL);
	log_event(LOG_INFO, "again", NULL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	later = drain(ends[0]);
	close(ends[0]);
	close(ends[1]);

	assert_int_equal(flags_before, flags_after);
	for (const char *line = flood; *line != '\0'; line = strchr(line, '\n') + 1)
	{
		dropped--;
	}
	assert_true(dropped > 0 && dropped < 10000);
	assert_int_equal(flood[strlen(flood) - 1], '\n');
	report = memory_format("level=warning event=log_lines_dropped count=%d\n", dropped);
	after = strstr(later, "event=after\n");
	assert_non_null(after);
	assert_non_null(strstr(later, report));
	assert_true(strstr(later, report) < after);
	assert_null(strstr(after, "log_lines_dropped"));
	assert_non_null(strstr(after, "event=again\n"));
	free(report);
	free(later);
	free(flood);
}

static void
test_a_closed_pipe_does_not_kill(void **state)
{
	int ends[2];
	int saved = dup(STDERR_FILENO);
	struct capture capture;
	char *text;

	(void) state;
	assert_int_equal(pipe(ends), 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	close(ends[0]);
	close(ends[1]);
	log_event(LOG_ERROR, "nobody_reads", NULL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	capture = capture_start(STDERR_FILENO);
	log_event(LOG_ERROR, "somebody_reads", NULL);
	text = capture_end(&capture);
	assert_non_null(strstr(text, "event=log_lines_dropped count=1\n"));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_logfmt_quotes_what_needs_it),
		cmocka_unit_test(test_no_value_can_forge_a_line),
		cmocka_unit_test(test_invalid_utf8_is_replaced),
		cmocka_unit_test(test_json_gives_the_value_back),
		cmocka_unit_test(test_head_and_numbers),
		cmocka_unit_test(test_level_filters),
		cmocka_unit_test(test_long_values_are_cut_and_marked),
		cmocka_unit_test(test_a_line_fits_a_pipe),
		cmocka_unit_test(test_a_full_pipe_drops_and_counts),
		cmocka_unit_test(test_a_closed_pipe_does_not_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
