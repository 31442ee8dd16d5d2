/* SPDX-License-Identifier: PostgreSQL */
/*
 * --shadow: every transaction ends in ROLLBACK, and what would have happened is reported, on standard
 * output when the puller ends. Whatever was tried is acknowledged, so the subscription must be one
 * that nobody needs.
 */
#ifndef INBOX_SHADOW_H
#define INBOX_SHADOW_H

#include <stdint.h>
#include <stdio.h>

#define SHADOW_ERRORS_MAX 50 /* kinds of them; what comes after is counted as one */

struct puller;
struct failure;
struct message;

/* Messages that failed with the same SQLSTATE for the same reason. */
struct shadow_error
{
	char sqlstate[6]; /* empty: it has none */
	const char *reason;
	uint64_t count;
	char *error; /* the first one's */
	char *key;	 /* the first one's, or NULL */
};

struct shadow
{
	struct shadow_error error[SHADOW_ERRORS_MAX];
	size_t errors;
	uint64_t others;
};

void shadow_free(struct shadow *shadow);

/* A message that would have failed. */
void shadow_fail(struct shadow *shadow, const struct failure *failure,
				 const struct message *message);

void shadow_report(const struct puller *puller, FILE *out);

#endif
