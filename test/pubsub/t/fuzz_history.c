/* SPDX-License-Identifier: PostgreSQL */
/*
 * What comes in from clients and what is written of it, under libFuzzer (make fuzz): bodies of
 * requests, filters, fault rules, names, times and ack ids are taken or refused, and each line of the
 * history is one JSON object, numbered without a gap, that gives back what was put into it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../env/json_strict.h"

#include "ackid.h"
#include "body.h"
#include "filter.h"
#include "history.h"
#include "memory.h"
#include "message.h"
#include "moment.h"
#include "name.h"
#include "problem.h"
#include "rule.h"
#include "settings.h"
#include "subscription.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
fail(const char *what)
{
	fprintf(stderr, "unsound: %s\n", what);
	abort();
}

static void
end_problem(struct problem *problem)
{
	json_object_put(problem->details);
	*problem = (struct problem){0};
}

/* ---- what comes in ------------------------------------------------------------------------- */

static void
read_settings(struct json_object *object, struct problem *problem)
{
	struct settings settings;

	if (settings_create(&settings, object, problem))
		settings_free(&settings);
	end_problem(problem);
}

static void
read_filter(const char *text, struct json_object *attributes, struct problem *problem)
{
	struct filter *filter = filter_parse(text, problem);

	if (filter != NULL)
	{
		(void) filter_match(filter, attributes);
		filter_free(filter);
	}
	end_problem(problem);
}

static struct json_object *
read_body(const char *bytes, size_t size)
{
	struct problem problem = {0};
	struct json_object *object = body_parse(bytes, size, &problem);
	struct message_parts parts;
	char *owned = NULL;
	struct rule *rule;

	end_problem(&problem);
	if (object == NULL)
		return NULL;
	(void) message_read(object, &parts, &owned, &problem);
	free(owned);
	end_problem(&problem);
	rule = rule_parse(object, 1, 7, &problem);
	if (rule != NULL)
		rule_free(rule);
	end_problem(&problem);
	read_settings(object, &problem);
	return object;
}

static void
read_text(const char *text, size_t size, struct json_object *attributes)
{
	struct problem problem = {0};
	struct ackid id;
	int64_t moment;

	(void) moment_parse(text, &moment);
	(void) ackid_parse(42, text, size, &id);
	(void) name_check(text, KIND_SUBSCRIPTION, &problem);
	end_problem(&problem);
	read_filter(text, attributes, &problem);
}

/* ---- what is written ----------------------------------------------------------------------- */

static void
write_history(struct history *history, const char *text, size_t size,
			  struct json_object *attributes)
{
	char name[] = "projects/p/subscriptions/s";
	struct subscription subscription = {.name = name};
	struct message message = {.id = 7, .attributes = attributes, .ordering_key = (char *) text};

	history_publish(history, "projects/p/topics/t", &message, &subscription);
	history_answer(history, &subscription, text, size, 7, -1, "ok");
	history_lookup(history, "primary", "found", name, text, 7);
	history_flush(history);
}

/* Bytes that are not text are kept as they are, and no reader is asked for them. */
static void
check_line(const char *line, int number, const char *member, const char *text, size_t size)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *object;
	struct json_object *value;

	json_tokener_set_flags(tokener, JSON_TOKENER_VALIDATE_UTF8 | JSON_STRICT);
	object = json_tokener_parse_ex(tokener, line, (int) strlen(line));
	if (json_tokener_get_error(tokener) != json_tokener_error_parse_utf8_string)
	{
		if (object == NULL || json_tokener_get_parse_end(tokener) != strlen(line))
			fail("a line is not one JSON object");
		if (json_object_get_int(json_object_object_get(object, "seq")) != number)
			fail("a line is missing");
		value = json_object_object_get(object, member);
		if ((size_t) json_object_get_string_len(value) != size ||
			memcmp(json_object_get_string(value), text, size) != 0)
			fail("a line does not give back what was put into it");
	}
	json_object_put(object);
	json_tokener_free(tokener);
}

static void
check_history(char *lines, const char *text, size_t size)
{
	static const char *const members[] = {"orderingKey", "ackId", "key"};
	char *rest = lines;

	for (int i = 0; i < 3; i++)
	{
		char *line = strsep(&rest, "\n");

		if (rest == NULL)
			fail("a line has no end");
		check_line(line, i + 1, members[i], text, i == 1 ? size : strlen(text));
	}
	if (*rest != '\0')
		fail("there is a line too many");
}

static char *
read_all(const char *path)
{
	int file = open(path, O_RDONLY);
	off_t size = lseek(file, 0, SEEK_END);
	char *bytes = memory_get((size_t) size + 1);

	if (pread(file, bytes, (size_t) size, 0) != size)
		fail("the history cannot be read");
	close(file);
	return bytes;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static char path[64];
	char *text = memory_get(size + 1);
	struct json_object *object;
	struct history *history;
	char *lines;

	memcpy(text, bytes, size);
	if (path[0] == '\0')
		snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd_create("history", MFD_CLOEXEC));
	object = read_body(text, size);
	read_text(text, size, object);
	history = history_open(path);
	write_history(history, text, size, object);
	lines = read_all(path);
	check_history(lines, text, size);
	free(lines);
	history_close(history);
	json_object_put(object);
	free(text);
	return 0;
}
