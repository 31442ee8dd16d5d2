/* SPDX-License-Identifier: PostgreSQL */
/*
 * What the databases of a simulated world have: one a timeline, since after a failover the old
 * primary may live on for a while, and the new one may lack what it had committed. No client can
 * see what is missing. So a puller may acknowledge what is committed on the timeline that it has
 * seen last, and on no other one; what is lost that way comes again when somebody seeks.
 */
#ifndef INBOX_TEST_SIMULATED_CLUSTER_H
#define INBOX_TEST_SIMULATED_CLUSTER_H

#include "simulated.h"

#define ITEMS_MAX 60
#define TIMELINES_MAX 9

/* What a database has of a message. */
struct row
{
	bool claimed;
	bool dead;
	int attempts; /* that were recorded; 0: no row of a failure */
	bool noted;	  /* the last one before it was made */
	int64_t failed_ms;
	int64_t retry_ms; /* nothing is counted before */
};

struct database
{
	struct row rows[ITEMS_MAX];
	int64_t applied_ms; /* the last time */
	int64_t halted_ms;	/* since then; 0: not */
};

static struct database databases[TIMELINES_MAX]; /* from 1 on */
static struct database *database;				 /* whose transaction runs */
static int newest;								 /* timeline */
static struct database standby;					 /* what it has received */
static bool asynchronous;
static int64_t database_away; /* until then, the newest */
static int64_t old_end;		  /* until then, the others live on */
static int seen[PULLERS_MAX]; /* timeline of the last connection; 0: none */
static bool
	missing[ITEMS_MAX]; /* acknowledged, and not in the newest database: for want of a seek */
static int64_t seek_ms; /* when somebody seeks; 0: there is no need */

static struct row *
newest_row(int key)
{
	return &databases[newest].rows[key];
}

static int
timeline_seen(const struct puller *puller)
{
	return seen[puller - pullers];
}

static int
timeline_of(const struct worker *worker)
{
	return atoi(worker->db.facts.timeline);
}

static bool
is_away(const struct worker *worker)
{
	return timeline_of(worker) == newest ? world_ms < database_away : world_ms >= old_end;
}

static void
begin_databases(void)
{
	memset(databases, 0, sizeof(databases));
	memset(missing, 0, sizeof(missing));
	memset(seen, 0, sizeof(seen));
	newest = 1;
	standby = databases[newest];
	asynchronous = happens(50);
	database_away = old_end = seek_ms = 0;
}

/* A standby that lags receives all in one go, now and then. */
static void
replicate(void)
{
	if (!asynchronous || happens(10))
	{
		standby = databases[newest];
	}
}

/* Once the old primary is gone for certain. */
static void
note_lost(int key)
{
	missing[key] = true;
	if (seek_ms == 0)
	{
		seek_ms = (world_ms > old_end ? world_ms : old_end) + 1 + chance(60000);
	}
}

/* Whoever is connected may go on with the old primary for a while. */
static void
promote_standby(void)
{
	replicate();
	newest++;
	databases[newest] = standby;
	old_end = happens(50) ? world_ms + chance(20000) : world_ms;
}

static void
connect_to_newest(struct worker *worker)
{
	static const char *const names[TIMELINES_MAX] = {"", "1", "2", "3", "4", "5", "6", "7", "8"};
	int *last = &seen[worker->puller - pullers];
	int told = changes_told;
	bool is_new = *last != 0 && *last != newest;

	*last = newest;
	connected(worker, names[newest]);
	assert_int_equal(changes_told - told, is_new ? 1 : 0);
}

#endif
