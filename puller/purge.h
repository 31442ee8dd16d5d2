/* SPDX-License-Identifier: PostgreSQL */
/*
 * Forgetting old keys every --purge-every, by inbox_purge_batch() on a connection of its own that
 * is only there while it has something to do. Several pullers do not disturb each other: the
 * database lets one purge at a time.
 */
#ifndef INBOX_PURGE_H
#define INBOX_PURGE_H

#include "db.h"

struct puller;

struct purge
{
	struct db db;
	char *runner;		/* who this is, to the database */
	int64_t ended_ms;	/* CLOCK_NEVER: none has, or the last one failed */
	int64_t next_ms;	/* then a purge begins, or goes on */
	int64_t started_ms; /* the batch under way */
	bool at_it;			/* a purge has begun and not ended */
};

void purge_init(struct puller *puller);
void purge_free(struct purge *purge);

/* Connects and sends what is due; nothing while no worker is connected, or the puller stops. */
void purge_step(struct puller *puller, int64_t now);

/* When purge_step() has something to do next. */
int64_t purge_deadline(const struct puller *puller, int64_t now);

#endif
