/* SPDX-License-Identifier: PostgreSQL */
#include "flow.h"

#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "clock.h"
#include "cluster.h"
#include "iam.h"
#include "lane.h"
#include "log.h"
#include "memory.h"
#include "pull.h"
#include "settle.h"
#include "stop.h"
#include "work.h"

/* A message is not started when less than this is left of its lease. */
#define LEAST_LEASE_MS 1000

/* ---- the database ---------------------------------------------------------------------- */

static void
db_ready(void *context, struct db *db)
{
	struct worker *worker = context;

	worker->puller->db_down_since = CLOCK_NEVER;
	worker->puller->metrics.connected++;
	cluster_watch(worker->puller, &db->facts);
}

static void
db_answered(void *context, struct db *db, const struct db_answer *answer)
{
	(void) db;
	answer_take(context, answer);
}

static bool
any_db_is(const struct puller *puller, enum db_state least)
{
	for (int i = 0; i < puller->workers; i++)
	{
		if (puller->worker[i].db.state >= least)
		{
			return true;
		}
	}
	return false;
}

static void
db_down(void *context, struct db *db, enum db_refusal refusal)
{
	struct worker *worker = context;
	struct puller *puller = worker->puller;

	(void) db;
	/* Another connection may be there to run what this one was pausing over. */
	settle_release(worker);
	if (refusal == DB_REFUSED_MISMATCH ||
		(refusal == DB_REFUSED_MISSING && puller->config->exit_on_permanent))
	{
		puller_exit(puller, 2);
	}
	if (puller->db_down_since == CLOCK_NEVER && !any_db_is(puller, DB_IDLE))
	{
		puller->db_down_since = clock_ms();
	}
}

const struct db_events flow_db_events = {
	.ready = db_ready,
	.answered = db_answered,
	.down = db_down,
};

/* One attempt at a time while none is up, so that a server that starts is not stormed. */
static void
connect_workers(struct puller *puller, int64_t now)
{
	bool up = any_db_is(puller, DB_IDLE);

	for (int i = 0; i < puller->workers; i++)
	{
		struct db *db = &puller->worker[i].db;

		if (db->state == DB_CONNECTING || db->state == DB_GREETING)
		{
			if (!up)
			{
				return;
			}
		}
		else if (db->state == DB_DOWN && now >= db->retry_ms)
		{
			iam_connect(puller->http, puller->config, db);
			if (!up)
			{
				return;
			}
		}
	}
}

/* The database has been away for longer than a failover takes: somebody else may have one. */
static void
give_up_held(struct puller *puller, int64_t now)
{
	struct message_list *ready = &puller->board.list[MESSAGE_READY];
	struct message *message;

	if (puller->db_down_since == CLOCK_NEVER || TAILQ_EMPTY(ready) ||
		now < puller->db_down_since + puller->config->db_grace)
	{
		return;
	}
	log_event(LOG_ERROR, "db_grace_over", "messages", LOG_INT,
			  (int64_t) puller->board.count[MESSAGE_READY], "err", LOG_TEXT,
			  "the database has been away for longer than --db-grace", "hint", LOG_TEXT,
			  "what was held is left to come back when its lease ends", NULL);
	while ((message = TAILQ_FIRST(ready)) != NULL)
	{
		message_forget(&puller->board, message);
	}
}

/* ---- dispatch -------------------------------------------------------------------------- */

/* Forgets a message whose lease is about to end; the service delivers it again. */
static bool
is_startable(struct puller *puller, struct message *message, int64_t now)
{
	if (message->lease_end - now >= LEAST_LEASE_MS)
	{
		return true;
	}
	log_event(LOG_INFO, "lease_too_short", "message_id", LOG_TEXT, message->message_id, "key",
			  LOG_TEXT, message->key, "hint", LOG_TEXT,
			  "it comes again; if this is frequent, raise ackDeadlineSeconds of the subscription",
			  NULL);
	puller->lease.expired++;
	message_end_lane(&puller->board, message);
	message_forget(&puller->board, message);
	return false;
}

static bool
any_works(const struct puller *puller, bool (*test)(const struct worker *worker))
{
	for (int i = 0; i < puller->workers; i++)
	{
		if (test(&puller->worker[i]))
		{
			return true;
		}
	}
	return false;
}

static bool
has_work(const struct worker *worker)
{
	return !work_is_idle(worker);
}

/*
 * As many ready messages as the limits allow, in the order of their arrival. A lane that runs on
 * another connection is passed over as a whole. A message with a defect and a suspect end the
 * batch, for they go another way; as the first it is returned through "alone".
 */
static size_t
gather(struct puller *puller, struct worker *worker, struct message **taken, struct message **alone,
	   int64_t now)
{
	size_t limit = puller->halted ? 1 : puller->batch_limit;
	struct message *message = TAILQ_FIRST(&puller->board.list[MESSAGE_READY]);
	struct message *next;
	size_t count = 0;
	size_t bytes = 0;

	*alone = NULL;
	for (; message != NULL && count < limit; message = next)
	{
		next = TAILQ_NEXT(message, link);
		if (!lane_may_run(message, worker) || !is_startable(puller, message, now))
		{
			continue;
		}
		if (message->defect != DEFECT_NONE || message->suspect || puller->config->as_dead_letters)
		{
			*alone = count == 0 ? message : NULL;
			break;
		}
		if (count > 0 && bytes + message->size > (size_t) puller->config->batch_bytes)
		{
			break;
		}
		bytes += message->size;
		taken[count++] = message;
	}
	return count;
}

/* Suspects run one at a time: with two at once it would not be known which one it was. */
static void
hand_over(struct puller *puller, struct worker *worker, struct message **taken, int64_t now)
{
	struct message *alone;
	size_t count = gather(puller, worker, taken, &alone, now);

	if (count > 0)
	{
		work_take(worker, taken, count);
	}
	else if (alone != NULL && !(alone->suspect && any_works(puller, work_has_suspect)))
	{
		work_take_alone(worker, alone);
	}
}

static void
dispatch(struct puller *puller, int64_t now)
{
	struct message **taken;

	if (TAILQ_EMPTY(&puller->board.list[MESSAGE_READY]) ||
		(puller->halted && (now < puller->probe_ms || any_works(puller, has_work))))
	{
		return;
	}
	taken = memory_new(puller->batch_limit * sizeof(struct message *));
	for (int i = 0; i < puller->workers; i++)
	{
		struct worker *worker = &puller->worker[i];

		if (work_is_idle(worker) && work_may_start(worker, now))
		{
			hand_over(puller, worker, taken, now);
		}
		if (puller->halted && !work_is_idle(worker))
		{
			break;
		}
	}
	free(taken);
}

/* ---- a turn ---------------------------------------------------------------------------- */

void
flow_step(struct puller *puller, int64_t now)
{
	if (!puller->stopping)
	{
		connect_workers(puller, now);
		give_up_held(puller, now);
		look_step(puller, now);
		dispatch(puller, now);
		for (int i = 0; i < puller->workers; i++)
		{
			work_step(&puller->worker[i], now);
		}
		purge_step(puller, now);
	}
	auth_step(&puller->auth, now);
	lease_step(&puller->lease, now);
	ack_step(&puller->ack, now);
	pull_step(puller, now);
	if (puller->stopping)
	{
		stop_step(puller, now);
	}
}

static int64_t
earlier(int64_t one, int64_t other)
{
	return one < other ? one : other;
}

static int64_t
worker_deadline(const struct worker *worker, int64_t now)
{
	if (worker->db.state == DB_DOWN)
	{
		/* Past it, another connection's attempt is waited for, and its end is an event. */
		return worker->db.retry_ms > now ? worker->db.retry_ms : CLOCK_NEVER;
	}
	if (worker->db.state == DB_GREETING)
	{
		return worker->db.greeting_end;
	}
	if (db_is_broken(&worker->db))
	{
		return now;
	}
	return worker->not_before > now ? worker->not_before : CLOCK_NEVER;
}

int64_t
flow_deadline(const struct puller *puller, int64_t now)
{
	int64_t deadline = earlier(lease_deadline(&puller->lease), ack_deadline(&puller->ack));

	deadline = earlier(deadline, earlier(auth_deadline(&puller->auth), pull_deadline(puller)));
	deadline = earlier(deadline, purge_deadline(puller, now));
	for (int i = 0; i < puller->workers && !puller->stopping; i++)
	{
		deadline = earlier(deadline, worker_deadline(&puller->worker[i], now));
	}
	if (puller->db_down_since != CLOCK_NEVER && puller->board.count[MESSAGE_READY] > 0)
	{
		deadline = earlier(deadline, puller->db_down_since + puller->config->db_grace);
	}
	if (puller->halted && puller->board.count[MESSAGE_READY] > 0)
	{
		deadline = earlier(deadline, puller->probe_ms > now ? puller->probe_ms : CLOCK_NEVER);
	}
	return puller->stopping ? earlier(deadline, stop_deadline(puller, now)) : deadline;
}
