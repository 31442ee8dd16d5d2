/* SPDX-License-Identifier: PostgreSQL */
#include "log_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "utf8.h"

#define VALUE_SIZE 1024 /* bytes of a value after escaping: a key of the greatest length fits */
#define TAIL_SIZE 48	/* kept free for fields_left_out and the end of the line */

static const char *const level_name[] = {
	[LOG_DEBUG] = "debug",
	[LOG_INFO] = "info",
	[LOG_WARNING] = "warning",
	[LOG_ERROR] = "error",
};

static bool
put(struct log_line *line, const char *bytes, size_t size)
{
	if (size > line->room - line->size)
	{
		return false;
	}
	memcpy(line->text + line->size, bytes, size);
	line->size += size;
	return true;
}

static bool
put_text(struct log_line *line, const char *text)
{
	return put(line, text, strlen(text));
}

/*
 * One character of a value, escaped as both formats take it; returns how many bytes were read.
 * C1 controls are escaped too: a terminal obeys U+009B as it does ESC [.
 */
static size_t
escape(const char *text, size_t size, char *out, size_t *out_size)
{
	static const char shorthand[] = {
		['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['"'] = '"', ['\\'] = '\\'};
	size_t length = utf8_character(text, size);
	unsigned char first = (unsigned char) text[0];

	if (length == 0)
	{
		*out_size = (size_t) sprintf(out, "\\ufffd");
		return 1;
	}
	if (first < sizeof(shorthand) && shorthand[first] != 0)
	{
		*out_size = (size_t) sprintf(out, "\\%c", shorthand[first]);
	}
	else if (first < 0x20 || first == 0x7F)
	{
		*out_size = (size_t) sprintf(out, "\\u%04x", first);
	}
	else if (first == 0xC2 && (unsigned char) text[1] < 0xA0)
	{
		*out_size = (size_t) sprintf(out, "\\u%04x", (unsigned char) text[1]);
	}
	else
	{
		memcpy(out, text, length);
		*out_size = length;
	}
	return length;
}

/* A value in quotes; one that is too long is cut between characters and ends in "…". */
static bool
put_quoted(struct log_line *line, const char *text)
{
	static const char mark[] = "\xE2\x80\xA6";
	size_t size = strlen(text);
	size_t start = line->size;
	size_t cut = 0; /* where the mark goes, once it is known that it fits */

	if (!put(line, "\"", 1))
	{
		return false;
	}
	cut = line->size;
	for (size_t at = 0; at < size;)
	{
		char escaped[8];
		size_t escaped_size;

		at += escape(text + at, size - at, escaped, &escaped_size);
		if (line->size + escaped_size - start - 1 > VALUE_SIZE)
		{
			line->size = cut;
			return put_text(line, mark) && put(line, "\"", 1);
		}
		if (!put(line, escaped, escaped_size))
		{
			return false;
		}
		if (line->size - start - 1 <= VALUE_SIZE - strlen(mark))
		{
			cut = line->size;
		}
	}
	return put(line, "\"", 1);
}

/* Whether a value can stand in logfmt as it is. */
static bool
is_bare(const char *text)
{
	size_t size = strlen(text);

	if (size == 0 || size > VALUE_SIZE || strpbrk(text, " =\"\\") != NULL)
	{
		return false;
	}
	for (size_t at = 0; at < size;)
	{
		char escaped[8];
		size_t escaped_size;
		size_t length = escape(text + at, size - at, escaped, &escaped_size);

		if (escaped_size != length || memcmp(escaped, text + at, length) != 0)
		{
			return false;
		}
		at += length;
	}
	return true;
}

static bool
put_value(struct log_line *line, const struct log_field *field)
{
	char number[32];
	uint64_t ms = field->number < 0 ? -(uint64_t) field->number : (uint64_t) field->number;

	if (field->kind == LOG_TEXT)
	{
		return line->format == LOG_LOGFMT && is_bare(field->text) ? put_text(line, field->text)
																  : put_quoted(line, field->text);
	}
	if (field->kind == LOG_INT || field->kind == LOG_COUNT)
	{
		snprintf(number, sizeof(number), "%" PRId64, field->number);
	}
	else
	{
		snprintf(number, sizeof(number), "%s%" PRIu64 ".%03u", field->number < 0 ? "-" : "",
				 ms / 1000, (unsigned) (ms % 1000));
	}
	return put_text(line, number);
}

static bool
put_name(struct log_line *line, const char *name)
{
	if (line->format == LOG_LOGFMT)
	{
		return (line->size == 0 || put(line, " ", 1)) && put_text(line, name) && put(line, "=", 1);
	}
	return put_text(line, line->size == 0 ? "{\"" : ",\"") && put_text(line, name) &&
		   put_text(line, "\":");
}

/* A field goes in whole or not at all. */
static void
put_field(struct log_line *line, const struct log_field *field)
{
	size_t start = line->size;

	if ((field->kind == LOG_TEXT && field->text == NULL) ||
		(field->kind == LOG_COUNT && field->number == 0))
	{
		return;
	}
	if (!put_name(line, field->name) || !put_value(line, field))
	{
		line->size = start;
		line->omitted++;
	}
}

static void
put_head(struct log_line *line, enum log_level level, const char *event)
{
	char stamp[40];
	struct timespec now;
	struct tm utc;
	size_t size;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	size = strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(stamp + size, sizeof(stamp) - size, ".%03uZ", (unsigned) (now.tv_nsec / 1000000));
	put_field(line, &(struct log_field){"ts", LOG_TEXT, .text = stamp});
	put_field(line, &(struct log_field){"level", LOG_TEXT, .text = level_name[level]});
	put_field(line, &(struct log_field){"event", LOG_TEXT, .text = event});
}

void
log_line_compose(struct log_line *line, enum log_format format, enum log_level level,
				 const char *event, const struct log_field *fields, size_t count)
{
	line->format = format;
	line->size = 0;
	line->omitted = 0;
	line->room = LOG_LINE_SIZE - TAIL_SIZE;
	put_head(line, level, event);
	for (size_t i = 0; i < count; i++)
	{
		put_field(line, &fields[i]);
	}
	line->room = LOG_LINE_SIZE;
	if (line->omitted > 0)
	{
		put_field(line, &(struct log_field){"fields_left_out", LOG_INT, .number = line->omitted});
	}
	(void) put_text(line, line->format == LOG_JSON ? "}\n" : "\n");
}
