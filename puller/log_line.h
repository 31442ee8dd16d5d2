/* SPDX-License-Identifier: PostgreSQL */
/* An event as the line of a log: its fields escaped, cut and counted as log.h says. */
#ifndef INBOX_LOG_LINE_H
#define INBOX_LOG_LINE_H

#include <limits.h>
#include <stddef.h>

#include "log.h"

/*
 * A pipe that poll() calls writable takes PIPE_BUF bytes at once, whole and without waiting; so
 * no line is longer. Setting O_NONBLOCK instead would change the descriptor for everybody who
 * shares it, the shell that started us included.
 */
#define LOG_LINE_SIZE PIPE_BUF

struct log_line
{
	enum log_format format;
	char text[LOG_LINE_SIZE];
	size_t size;
	size_t room;	  /* how far fields may go */
	unsigned omitted; /* fields that did not fit */
};

void log_line_compose(struct log_line *line, enum log_format format, enum log_level level,
					  const char *event, const struct log_field *fields, size_t count);

#endif
