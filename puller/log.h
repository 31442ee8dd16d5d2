/* SPDX-License-Identifier: PostgreSQL */
/*
 * Structured logs on stderr, one line an event, logfmt or JSON: ts, level, event, then the fields.
 *
 *	log_event(LOG_WARNING, "pull_failed", "status", LOG_INT, (int64_t) 503,
 *	          "err", LOG_TEXT, message, NULL);
 *
 * Event names are stable and in lower_snake_case. Values are escaped for the format, so that no
 * key or error text can forge a line; a NULL text leaves its field out. Never pass a secret or a
 * payload. A line is written whole by one write(2), and dropped and counted rather than waited
 * for when stderr is a full pipe: a reader that stops must not stop the loop. The next line that
 * can be written is preceded by an event log_lines_dropped with their count.
 *
 * A line has at most 4096 bytes: a value of more than 1024 is cut and ends in "…", and fields
 * beyond the line are left out and counted in fields_left_out. Only the loop's thread may log.
 */
#ifndef INBOX_LOG_H
#define INBOX_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_format
{
	LOG_LOGFMT,
	LOG_JSON
};

enum log_level
{
	LOG_DEBUG,
	LOG_INFO,
	LOG_WARNING,
	LOG_ERROR
};

enum log_kind
{
	LOG_TEXT = 1, /* const char * */
	LOG_INT,	  /* int64_t */
	LOG_COUNT,	  /* int64_t; 0 leaves its field out */
	LOG_SECONDS	  /* int64_t of milliseconds, written as seconds with three decimals */
};

struct log_field
{
	const char *name;
	enum log_kind kind;
	union
	{
		const char *text;
		int64_t number;
	};
};

/* Sets the format and the lowest level written; LOG_LOGFMT and LOG_INFO until then. */
void log_configure(enum log_format format, enum log_level level);

/* True when an event of this level would be written: to spare costly fields. */
bool log_wants(enum log_level level);

/*
 * Writes an event. After the name come triples of field name, enum log_kind and value, ended by
 * NULL; at most 32 of them.
 */
void log_event(enum log_level level, const char *event, ...) __attribute__((sentinel));

/* The same for fields that are known only at run time. */
void log_fields(enum log_level level, const char *event, const struct log_field *fields,
				size_t count);

typedef void (*log_reader)(void *context, enum log_level level, const char *event,
						   const struct log_field *fields, size_t count);

/* From now on events go to the reader and not to stderr; NULL ends that. */
void log_divert(log_reader reader, void *context);

/* The reader sees every event that is written, too; NULL ends that. */
void log_watch(log_reader reader, void *context);

/* Tells of lines that were left out, if it is time or at the end. */
void log_step(bool at_end);

#endif
