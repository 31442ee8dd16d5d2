/* SPDX-License-Identifier: PostgreSQL */
/*
 * The last warnings and errors of the log, for the status page: newest first, one that says the
 * same again is counted.
 */
#ifndef INBOX_TROUBLE_H
#define INBOX_TROUBLE_H

#include <stddef.h>
#include <stdint.h>

#include "log.h"

#define TROUBLES_MAX 20
#define TROUBLE_TEXT_SIZE 320

struct trouble
{
	int64_t at_ms; /* CLOCK_REALTIME, when it came last */
	uint64_t times;
	enum log_level level;
	char event[48];
	char sqlstate[8];
	char error[TROUBLE_TEXT_SIZE]; /* cut between characters */
	char hint[TROUBLE_TEXT_SIZE];
	char key[TROUBLE_TEXT_SIZE]; /* of the last message it was about, or "" */
	char message_id[64];
};

struct troubles
{
	struct trouble trouble[TROUBLES_MAX]; /* newest first */
	size_t count;
};

/* A log_reader; the context is the struct troubles. */
void trouble_see(void *context, enum log_level level, const char *event,
				 const struct log_field *fields, size_t count);

#endif
