/* SPDX-License-Identifier: PostgreSQL */
#include "answer.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "failure.h"
#include "fault_point.h"
#include "log.h"
#include "memory.h"
#include "recording.h"
#include "settle.h"
#include "sqlstate.h"
#include "verdict.h"
#include "work.h"

/* Connections lost by an orderly shutdown before what ran on them is suspected all the same. */
#define LOSSES_LIMIT 10

/* A quiet queue has batches of one, a busy one big commits, a slow handler few at a time. */
static void
adapt_batch_limit(struct worker *worker)
{
	struct puller *puller = worker->puller;
	int64_t took = clock_ms() - worker->started_ms;
	size_t most = (size_t) puller->config->batch_size;

	if (took > puller->config->batch_time && puller->batch_limit > 1)
	{
		puller->batch_limit /= 2;
	}
	else if (took * 2 < puller->config->batch_time && worker->run_count >= puller->batch_limit)
	{
		puller->batch_limit *= 2;
	}
	if (puller->batch_limit > most)
	{
		puller->batch_limit = most;
	}
}

/* What waits behind one that has to wait might run when it is its turn no more. */
static void
finish_run(struct worker *worker, struct message *const *later, size_t count)
{
	batch_finish_run(worker->batch);
	for (size_t i = 0; i < count; i++)
	{
		settle_followers(worker, later[i], VERDICT_LATER_PAUSE_MS);
	}
}

static void
settle_run(struct worker *worker, const struct db_answer *answer)
{
	struct message **messages;
	size_t count = batch_run(worker->batch, &messages);
	struct message **later = memory_new(count * sizeof(struct message *));
	size_t laters = 0;
	int64_t now_us = clock_real_us();
	struct metrics *metrics = &worker->puller->metrics;

	(void) FAULT_POINT("commit-read");
	worker->puller->progress_ms = clock_ms();
	metrics_batch(metrics, count, answer->call_us, answer->took_us);
	for (size_t i = 0; i < count; i++)
	{
		enum verdict verdict = verdict_of(worker->puller, messages[i], answer->rows, i);

		/* Who waits for an earlier message would wait for ever: nothing ends it here. */
		if (verdict == VERDICT_LATER && worker->puller->config->shadow)
		{
			verdict = VERDICT_DURABLE;
		}
		switch (verdict)
		{
			case VERDICT_DURABLE:
				metrics_age(metrics, messages[i]->publish_time, now_us);
				settle_acknowledge(worker, messages[i]);
				break;
			case VERDICT_LATER:
				lease_return(&worker->puller->lease, messages[i], VERDICT_LATER_PAUSE_MS);
				later[laters++] = messages[i];
				break;
			case VERDICT_NONE:
				message_forget(&worker->puller->board, messages[i]);
				break;
		}
	}
	adapt_batch_limit(worker);
	backoff_reset(&worker->backoff);
	finish_run(worker, later, laters);
	free(later);
}

static void
blame(struct worker *worker, struct message *message, const struct db_answer *answer)
{
	worker->failed = message;
	failure_of_answer(&worker->failure, answer);
}

/* Alone it is blamed; among others the run is cut so that the next try tells more. */
static void
isolate(struct worker *worker, const struct db_answer *answer)
{
	struct message **messages;
	size_t count = batch_run(worker->batch, &messages);

	if (count == 1)
	{
		blame(worker, messages[0], answer);
	}
	else if (answer->ordinal >= 1 && (size_t) answer->ordinal <= count)
	{
#ifndef INBOX_WITHOUT_FAILED_ALONE
		batch_cut(worker->batch, (size_t) answer->ordinal - 1);
#else
		blame(worker, messages[answer->ordinal - 1], answer);
#endif
	}
	else
	{
		batch_halve(worker->batch);
	}
}

/* A batch that was too slow is halved; a message that is named again and again runs alone. */
static void
shrink(struct worker *worker, const struct db_answer *answer)
{
	struct message **messages;
	size_t count = batch_run(worker->batch, &messages);
	size_t named = answer->ordinal >= 1 && (size_t) answer->ordinal <= count
					   ? (size_t) answer->ordinal - 1
					   : count;

	if (count == 1)
	{
		blame(worker, messages[0], answer);
	}
	else if (named < count && ++messages[named]->blames >= 3)
	{
		batch_cut(worker->batch, named);
	}
	else
	{
		batch_halve(worker->batch);
	}
	if (worker->puller->batch_limit > 1)
	{
		worker->puller->batch_limit /= 2;
	}
}

/*
 * Our own call could not be resolved or is not allowed any more: the handler was dropped, or a
 * grant. No message is at fault; a new greeting finds out what it is, and waits for it.
 */
static void
greet_again(struct worker *worker, const struct db_answer *answer)
{
	settle_pause(worker, answer);
	settle_release(worker);
	db_close(&worker->db, "the handler cannot be called any more");
}

/*
 * Tried again alone, and at once: whoever held the rows is done or has been rolled back. When it
 * was alone already, the rows are held by somebody who does not take our lock.
 */
static void
run_alone(struct worker *worker, const struct db_answer *answer)
{
	struct contention *contention = &worker->puller->contention;
	bool was_alone = worker->db.lock != DB_LOCK_SHARED;

	contention_meet(contention, clock_ms());
	metrics_failure(&worker->puller->metrics, answer->sqlstate);
	log_event(LOG_INFO, "contention", "worker", LOG_INT, (int64_t) worker->db.number, "messages",
			  LOG_INT, (int64_t) worker->run_count, "sqlstate", LOG_TEXT, answer->sqlstate, "err",
			  LOG_TEXT, answer->message, NULL);
	if (was_alone)
	{
		settle_pause(worker, answer);
	}
}

/* The connection lived on: it was not this message. */
static void
acquit(struct worker *worker)
{
	struct message **messages;

	if (batch_run(worker->batch, &messages) == 1)
	{
		messages[0]->suspect = false;
	}
}

static void
run_failed(struct worker *worker, const struct db_answer *answer)
{
	if (answer->waited_for_lock)
	{
		settle_pause(worker, answer);
		return;
	}
	worker->puller->metrics.failed++;
	acquit(worker);
	switch (sqlstate_classify(answer->sqlstate))
	{
		case SQLSTATE_TRANSIENT:
			settle_pause(worker, answer);
			break;
		case SQLSTATE_CONTENTION:
			run_alone(worker, answer);
			break;
		case SQLSTATE_TIMEOUT:
			shrink(worker, answer);
			break;
		case SQLSTATE_DEPLOYMENT:
			if (answer->ordinal == 0 && !answer->deferred)
			{
				greet_again(worker, answer);
				break;
			}
			isolate(worker, answer);
			break;
		case SQLSTATE_INTERNAL:
		case SQLSTATE_MESSAGE:
			isolate(worker, answer);
			break;
	}
}

/*
 * A server that says good-bye is not one that a message has killed; unless it says so again and
 * again to the same message, whose handler may be why somebody or something ends its session.
 */
static void
suspect(struct message *message, bool shut_down)
{
	message->losses++;
#ifndef INBOX_WITHOUT_SUSPECTS
	message->suspect = !shut_down || message->losses >= LOSSES_LIMIT;
#else
	(void) shut_down;
#endif
}

/*
 * The commit stands here but maybe nowhere else, so these are left to come back by themselves; and
 * with them what is behind them in their lanes, which on another server would overtake them.
 */
static void
leave_to_come_back(struct worker *worker, struct message *const *run, size_t count)
{
	struct message_board *board = &worker->puller->board;
	struct message **messages = memory_new(count * sizeof(struct message *));

	memcpy(messages, run, count * sizeof(struct message *));
	settle_release(worker);
	for (size_t i = 0; i < count; i++)
	{
		message_end_lane(board, messages[i]);
		message_forget(board, messages[i]);
	}
	free(messages);
}

/*
 * Neither acknowledged nor given back nor counted. With the connection lost, what was in it is
 * tried again while we hold its lease: the claim tells whether it was applied. Otherwise a warning
 * came with the COMMIT.
 */
static void
run_unknown(struct worker *worker, const struct db_answer *answer)
{
	struct message **messages;
	size_t count = batch_run(worker->batch, &messages);

	(void) FAULT_POINT("outcome-unknown");
	worker->puller->metrics.unknown++;
	log_event(LOG_WARNING, "outcome_unknown", "worker", LOG_INT, (int64_t) worker->db.number,
			  "messages", LOG_INT, (int64_t) count, "sqlstate", LOG_TEXT, answer->sqlstate, "err",
			  LOG_TEXT, answer->message, "hint", LOG_TEXT,
			  "nothing of it is acknowledged; the messages are run again, and what was committed "
			  "is a duplicate then",
			  NULL);
	if (worker->db.state != DB_DOWN)
	{
		leave_to_come_back(worker, messages, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
	{
		suspect(messages[i], answer->shut_down);
	}
	settle_release(worker);
}

static void
run_answered(struct worker *worker, const struct db_answer *answer)
{
	switch (answer->outcome)
	{
		case DB_COMMITTED:
			settle_run(worker, answer);
			break;
		case DB_FAILED:
			run_failed(worker, answer);
			break;
		case DB_UNKNOWN:
			run_unknown(worker, answer);
			break;
	}
}

/* In this turn, so that the connection gets its next batch without waiting for another event. */
static void
end_batch(struct worker *worker)
{
	struct message **messages;

	if (worker->batch != NULL && worker->failed == NULL && batch_run(worker->batch, &messages) == 0)
	{
		settle_batch(worker);
	}
}

void
answer_take(struct worker *worker, const struct db_answer *answer)
{
	enum work work = worker->work;

	worker->work = WORK_NONE;
	if (work == WORK_LOOK)
	{
		look_answered(worker->puller, answer);
		if (worker->db.state == DB_DOWN)
		{
			settle_release(worker);
		}
	}
	else if (work == WORK_FAIL)
	{
		recording_answered(worker, answer);
	}
	else
	{
		run_answered(worker, answer);
	}
	end_batch(worker);
	if (worker->puller->stopping)
	{
		work_stop(worker);
	}
}
