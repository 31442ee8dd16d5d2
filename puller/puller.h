/* SPDX-License-Identifier: PostgreSQL */
/*
 * All of the puller's state, and the way of a message through its files:
 *
 *	pull.c      asks for messages while there is credit
 *	decode.c    makes messages of a response
 *	arrival.c   puts them in their place
 *	flow.c      hands ready messages to idle connections
 *	work.c      runs them in a transaction
 *	answer.c    says what its answer means for them
 *	recording.c says so for one whose failure was recorded
 *	settle.c    sends each on its way
 *	ack.c       acknowledges what is durable          lease.c     gives back what is not
 */
#ifndef INBOX_PULLER_H
#define INBOX_PULLER_H

#include <stdbool.h>
#include <stdint.h>

#include "ack.h"
#include "auth.h"
#include "batch.h"
#include "config.h"
#include "connector.h"
#include "contention.h"
#include "db.h"
#include "history.h"
#include "http.h"
#include "lease.h"
#include "look.h"
#include "message.h"
#include "metrics.h"
#include "notify.h"
#include "pubsub.h"
#include "purge.h"
#include "shadow.h"
#include "trouble.h"

#define WORKERS_MAX 64

struct puller;
struct listen;

enum work
{
	WORK_NONE,
	WORK_RUN,  /* inbox_process_batch for the batch's current run */
	WORK_FAIL, /* inbox_fail for one message */
	WORK_LOOK  /* asks how the source stands */
};

/* Why a message failed, as inbox_fail() records it. Texts are owned; NULL where there is none. */
struct failure
{
	char *sqlstate;
	char *error;
	char *detail;
	char *hint;
	char *context;
	const char *reason; /* 'handler', or the name of a defect or of a verdict */
};

/* One connection and what it is at. */
struct worker
{
	struct puller *puller;
	struct db db;
	struct batch *batch;	/* NULL: none taken */
	enum work work;			/* what the running transaction does */
	size_t run_count;		/* messages in it */
	struct message *failed; /* to be recorded by inbox_fail next, or now */
	struct failure failure;
	struct backoff backoff; /* after failures that are nobody's fault */
	int64_t not_before;
	int64_t started_ms;
};

struct pull_state
{
	unsigned in_flight;
	unsigned width;		 /* how many may be in flight now */
	size_t asked;		 /* the sum of maxMessages in flight */
	int max_messages;	 /* halved when a response is too large */
	double average_size; /* bytes a message */
	int64_t not_before;
	struct backoff backoff;
	bool looking;			 /* the subscription is being read */
	bool known;				 /* it was read, or may not be */
	int64_t look_ms;		 /* then it is read again */
	int64_t deadline_ms;	 /* its ack deadline */
	bool waiting_for_person; /* the last failure will not pass by itself */
	bool token_refused;		 /* it was the token of this version */
	unsigned token;
	int64_t failing_since; /* CLOCK_NEVER: the last answer was good */
	int64_t started_ms;	   /* when the last one was sent */
	char trouble[256];	   /* what was wrong with it */
};

struct puller
{
	struct config *config;
	struct http *http;
	struct auth auth;
	struct pubsub pubsub;
	struct connector *connector;
	struct message_board board;
	struct lease lease;
	struct ack ack;
	struct pull_state pull;
	struct metrics metrics;
	struct history history;
	struct look look;
	struct troubles troubles;
	struct listen *listen; /* NULL: nobody is listened to */
	struct notify notify;
	int64_t started_us; /* CLOCK_REALTIME */

	struct worker worker[WORKERS_MAX];
	int workers;
	size_t batch_limit; /* messages a batch takes now */
	struct contention contention;
	bool halted;		   /* the source: one message is tried at a time */
	int64_t halted_ms;	   /* halted: when that was found last */
	int64_t probe_ms;	   /* halted: not before */
	struct backoff probe;  /* the pauses between these */
	int64_t db_down_since; /* CLOCK_NEVER: it is not down */
	int64_t progress_ms;   /* when a verdict came last, or the first message of a quiet time */
	char *system_id;	   /* of the cluster whose commits are acknowledged */
	char *timeline;

	struct purge purge;
	struct shadow shadow;

	bool stopping;
	int64_t stop_deadline;
	bool done;
	int exit_status;
};

void puller_init(struct puller *puller, struct config *config);
void puller_free(struct puller *puller);

/* Ends the loop with this status at the end of the turn. */
void puller_exit(struct puller *puller, int status);

#endif
