/* SPDX-License-Identifier: PostgreSQL */
#include "log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "log_limit.h"
#include "log_line.h"

#define FIELDS_MAX 32

static enum log_format log_format = LOG_LOGFMT;
static enum log_level log_lowest = LOG_INFO;
static log_reader diverted; /* NULL: stderr */
static void *diverted_context;
static log_reader watcher;
static void *watcher_context;
static uint64_t dropped; /* lines, for the next one that can be written to tell */
static bool line_torn;	 /* the last write ended inside a line */

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

/* POLLERR is a pipe without a reader: writing would raise SIGPIPE. */
static bool
can_write(void)
{
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&out, 1, 0) == 1 && out.revents == POLLOUT;
}

/* Written whole, or false. */
static bool
write_line(const struct log_line *line)
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
	struct log_line line;

	log_line_compose(&line, log_format, LOG_WARNING, "log_lines_dropped", &count, 1);
	if (write_line(&line))
	{
		dropped = 0;
	}
}

static void
write_event(enum log_level level, const char *event, const struct log_field *fields, size_t count)
{
	struct log_line line;

	if (dropped > 0)
	{
		report_dropped();
	}
	log_line_compose(&line, log_format, level, event, fields, count);
	if (!write_line(&line))
	{
		dropped++;
	}
}

void
log_divert(log_reader reader, void *context)
{
	diverted = reader;
	diverted_context = context;
}

void
log_watch(log_reader reader, void *context)
{
	watcher = reader;
	watcher_context = context;
}

void
log_fields(enum log_level level, const char *event, const struct log_field *fields, size_t count)
{
	if (!log_wants(level))
	{
		return;
	}
	if (diverted != NULL)
	{
		diverted(diverted_context, level, event, fields, count);
		return;
	}
	if (watcher != NULL)
	{
		watcher(watcher_context, level, event, fields, count);
	}
	if (level == LOG_DEBUG || log_limit_take(event, clock_ms()))
	{
		write_event(level, event, fields, count);
	}
}

void
log_step(bool at_end)
{
	const char *event;
	uint64_t count;

	while ((event = log_limit_next(clock_ms(), at_end, &count)) != NULL)
	{
		struct log_field fields[] = {{"of", LOG_TEXT, .text = event},
									 {"count", LOG_INT, .number = (int64_t) count}};

		write_event(LOG_WARNING, "log_lines_left_out", fields, 2);
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
