/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_SERVICE_H
#define PUBSUB_SERVICE_H

#include <stdint.h>

#include "list.h"
#include "timer.h"

struct json_object;
struct lh_table;
struct faults;
struct history;
struct lookup;
struct tokens;

/* What happened, for /control/stats. Messages, not requests, unless the name says otherwise. */
struct counters
{
	uint64_t requests;
	uint64_t pulls;
	uint64_t published;
	uint64_t delivered;
	uint64_t acked;	  /* acknowledgements that took effect */
	uint64_t ignored; /* acknowledgements that did not: expired, superseded, out of order */
	uint64_t nacked;
	uint64_t extended;
	uint64_t expired;
	uint64_t dead_lettered;
};

/*
 * Everything the server knows. One thread runs it all, so nothing here is locked: an event
 * (request, timer, answer of a database) is worked off completely before the next begins.
 * The tables map full resource names to their objects and own neither.
 */
struct service
{
	struct lh_table *topics;
	struct lh_table *subscriptions;
	struct lh_table *snapshots;
	struct timers timers;
	struct timer sweep; /* the next time to drop what is beyond its retention */
	struct link hungry; /* subscriptions to serve before the next wait */
	struct counters counters;
	struct faults *faults;
	struct history *history;	/* NULL: not kept */
	struct lookup *lookup;		/* NULL: acknowledgements are not verified */
	struct tokens *tokens;		/* NULL: everybody is let in */
	struct json_object *denied; /* permissions; NULL: none */
	int64_t long_poll;			/* how long a pull waits, nanoseconds */
	uint64_t last_message;
	uint64_t last_lease;
	uint64_t last_subscription;
	uint64_t ack_secret;
};

void service_init(struct service *service);

/* Gives what became deliverable to the pulls that wait for it. */
void service_settle(struct service *service);
void service_free(struct service *service);

#endif
