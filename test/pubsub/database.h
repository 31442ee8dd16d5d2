/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_DATABASE_H
#define PUBSUB_DATABASE_H

#include <libpq-fe.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "timer.h"

/*
 * A connection to PostgreSQL that never blocks and comes back by itself: a server under test is
 * killed, stopped and replaced while its owner goes on. One query at a time.
 */
struct database
{
	struct timers *timers;
	const char *name; /* for messages */
	const char *conninfo;
	PGconn *connection; /* NULL: waiting to try again */
	PostgresPollingStatusType polling;
	bool busy;			/* a query is on its way */
	struct timer pause; /* until the next attempt */
	char problem[300];	/* the last one reported; not reported again until it changes */

	/* Called when it is ready for a query; and with each result, NULL at the end of a query. */
	void (*ready)(struct database *database);
	void (*result)(struct database *database, PGresult *result);

	/* The query was lost with its connection, or failed. */
	void (*lost)(struct database *database);
};

void database_open(struct database *database);
void database_close(struct database *database);

/*
 * Sends a query with text parameters of these types (NULL: as the query says); true if it is on
 * its way. Only when ready.
 */
bool database_query(struct database *database, const char *sql, int count, const Oid *types,
					const char *const *values);

/* What to wait for; false if there is nothing. */
bool database_poll(const struct database *database, struct pollfd *descriptor);

/* Does what can be done without waiting. */
void database_run(struct database *database);

/* Calls ready() again after that time. */
void database_pause(struct database *database, int64_t nanoseconds);

#endif
