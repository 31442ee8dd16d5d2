/* SPDX-License-Identifier: PostgreSQL */
/*
 * What the database alone knows, for the status page and the metrics: how the source stands, its
 * newest dead letters, which ordering keys wait. Asked for only while somebody looks, every few
 * seconds at most, on a connection that has nothing to do or, where none ever has, between two
 * batches, with a short limit: messages do not wait for it.
 */
#ifndef INBOX_LOOK_H
#define INBOX_LOOK_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

struct db_answer;
struct puller;

struct look
{
	int64_t wanted_ms;		   /* when somebody looked last; 0: nobody has */
	int64_t asked_ms;		   /* when the database was asked last */
	int64_t known_ms;		   /* when it answered last; 0: it has not */
	struct json_object *known; /* {"status": {…}, "failures": […]}, or NULL */
	char error[256];		   /* why it has not, or "" */
};

void look_free(struct look *look);

/* Somebody looks. */
void look_want(struct puller *puller, int64_t now);

/* Asks if it is time and a connection is free. */
void look_step(struct puller *puller, int64_t now);

/* The transaction that asked has ended. */
void look_answered(struct puller *puller, const struct db_answer *answer);

/* A number of inbox_status(); false: it is not known, or not from these minutes. */
bool look_number(const struct puller *puller, const char *name, int64_t now, double *number);

#endif
