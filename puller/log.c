/* SPDX-License-Identifier: PostgreSQL */
#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "utf8.h"

/*
 * A pipe that poll() calls writable takes PIPE_BUF bytes at once, whole and without waiting; so
 * no line is longer. Setting O_NONBLOCK instead would change the descriptor for everybody who
 * shares it, the shell that started us included.
 */
#define LINE_SIZE PIPE_BUF
#define VALUE_SIZE 1024 /* bytes of a value after escaping: a key of the greatest length fits */
#define TAIL_SIZE 48	/* kept free for fields_left_out and the end of the line */
#define FIELDS_MAX 32

struct line
{
	char text[LINE_SIZE];
	size_t size;
	size_t room;	  /* how far fields may go */
	unsigned omitted; /* fields that did not fit */
};

static enum log_format log_format = LOG_LOGFMT;
static enum log_level log_lowest = LOG_INFO;
static log_reader diverted; /* NULL: stderr */
static void *diverted_context;
static uint64_t dropped; /* lines, for the next one that can be written to tell */
static bool line_torn;	 /* the last write ended inside a line */

static const char *const level_name[] = {
	[LOG_DEBUG] = "debug",
	[LOG_INFO] = "info",
	[LOG_WARNING] = "warning",
	[LOG_ERROR] = "error",
};

void
log_configure(enum log_format format, enum log_level level)
{
	log_format = format;
	log_lowest = level;
}

bool
log_wants(enum log_level level)
{
	return level >= log_lowest;
}

/* ---- composing a line ------------------------------------------------------------------- */

static bool
put(struct line *line, const char *bytes, size_t size)
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
put_text(struct line *line, const char *text)
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
put_quoted(struct line *line, const char *text)
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
put_value(struct line *line, const struct log_field *field)
{
	char number[32];
	uint64_t ms = field->number < 0 ? -(uint64_t) field->number : (uint64_t) field->number;

	if (field->kind == LOG_TEXT)
	{
		return log_format == LOG_LOGFMT && is_bare(field->text) ? put_text(line, field->text)
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
put_name(struct line *line, const char *name)
{
	if (log_format == LOG_LOGFMT)
	{
		return (line->size == 0 || put(line, " ", 1)) && put_text(line, name) && put(line, "=", 1);
	}
	return put_text(line, line->size == 0 ? "{\"" : ",\"") && put_text(line, name) &&
		   put_text(line, "\":");
}

/* A field goes in whole or not at all. */
static void
put_field(struct line *line, const struct log_field *field)
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
put_head(struct line *line, enum log_level level, const char *event)
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

static void
compose(struct line *line, enum log_level level, const char *event, const struct log_field *fields,
		size_t count)
{
	line->size = 0;
	line->omitted = 0;
	line->room = LINE_SIZE - TAIL_SIZE;
	put_head(line, level, event);
	for (size_t i = 0; i < count; i++)
	{
		put_field(line, &fields[i]);
	}
	line->room = LINE_SIZE;
	if (line->omitted > 0)
	{
		put_field(line, &(struct log_field){"fields_left_out", LOG_INT, .number = line->omitted});
	}
	(void) put_text(line, log_format == LOG_JSON ? "}\n" : "\n");
}

/* ---- writing it --------------------------------------------------------------------------- */

/* POLLERR is a pipe without a reader: writing would raise SIGPIPE. */
static bool
can_write(void)
{
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&out, 1, 0) == 1 && out.revents == POLLOUT;
}

/* Written whole, or false. */
static bool
write_line(const struct line *line)
{
	ssize_t written;

	if (!can_write())
	{
		return false;
	}
	if (line_torn)
	{
		/* A full disk cut the last line; what follows must not be glued to it. */
		line_torn = write(STDERR_FILENO, "\n", 1) != 1;
	}
	do
	{
		written = write(STDERR_FILENO, line->text, line->size);
	} while (written < 0 && errno == EINTR);
	line_torn = line_torn || (written > 0 && (size_t) written < line->size);
	return written == (ssize_t) line->size;
}

static void
report_dropped(void)
{
	struct log_field count = {"count", LOG_INT, .number = (int64_t) dropped};
	struct line line;

	compose(&line, LOG_WARNING, "log_lines_dropped", &count, 1);
	if (write_line(&line))
	{
		dropped = 0;
	}
}

void
log_divert(log_reader reader, void *context)
{
	diverted = reader;
	diverted_context = context;
}

void
log_fields(enum log_level level, const char *event, const struct log_field *fields, size_t count)
{
	struct line line;

	if (!log_wants(level))
	{
		return;
	}
	if (diverted != NULL)
	{
		diverted(diverted_context, level, event, fields, count);
		return;
	}
	if (dropped > 0)
	{
		report_dropped();
	}
	compose(&line, level, event, fields, count);
	if (!write_line(&line))
	{
		dropped++;
	}
}

void
log_event(enum log_level level, const char *event, ...)
{
	struct log_field fields[FIELDS_MAX];
	size_t count = 0;
	const char *name;
	va_list arguments;

	if (!log_wants(level))
	{
		return;
	}
	va_start(arguments, event);
	while ((name = va_arg(arguments, const char *)) != NULL && count < FIELDS_MAX)
	{
		fields[count].name = name;
		fields[count].kind = (enum log_kind) va_arg(arguments, int);
		if (fields[count].kind == LOG_TEXT)
		{
			fields[count].text = va_arg(arguments, const char *);
		}
		else
		{
			fields[count].number = va_arg(arguments, int64_t);
		}
		count++;
	}
	va_end(arguments);
	log_fields(level, event, fields, count);
}
