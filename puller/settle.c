/* SPDX-License-Identifier: PostgreSQL */
#include "settle.h"

#include <string.h>

#include "ack.h"
#include "clock.h"
#include "failure.h"
#include "lease.h"
#include "log.h"

void
settle_batch(struct worker *worker)
{
	if (worker->batch != NULL)
	{
		batch_free(worker->batch);
		worker->batch = NULL;
	}
}

static void
leave_to(struct worker *worker, struct message *message, int64_t pause_ms)
{
	if (worker->batch != NULL)
	{
		batch_remove(worker->batch, message);
	}
	lease_return(&worker->puller->lease, message, pause_ms);
}

static bool
is_copy(const struct message *other, const struct message *message)
{
	return message->key != NULL && other->key != NULL && strcmp(other->key, message->key) == 0;
}

static bool
is_follower(const struct message *other, const struct message *message)
{
#ifndef INBOX_WITHOUT_ORDER
	return message->lane != NULL && other->lane == message->lane &&
		   other->sequence > message->sequence;
#else
	(void) other;
	(void) message;
	return false;
#endif
}

/* Copies of its key would be judged before it, and followers of its ordering key overtake it. */
static bool
must_wait_for(const struct message *other, const struct message *message)
{
	return is_copy(other, message) || is_follower(other, message);
}

/* What was running in this batch and what waits for any connection share the message's pause. */
void
settle_followers(struct worker *worker, const struct message *message, int64_t pause_ms)
{
	struct message_list *ready = &worker->puller->board.list[MESSAGE_READY];
	struct message **rest;
	size_t count = worker->batch != NULL ? batch_rest(worker->batch, &rest) : 0;
	struct message *other;
	struct message *next;

	for (size_t i = 0; i < count; i++)
	{
#ifdef INBOX_WITHOUT_SHARED_FATE
		if (rest[i] != message && is_copy(rest[i], message))
		{
			batch_remove(worker->batch, rest[i]);
			settle_acknowledge(worker, rest[i]);
			continue;
		}
#endif
		if (rest[i] != message && must_wait_for(rest[i], message))
		{
			leave_to(worker, rest[i], pause_ms);
		}
	}
	for (other = TAILQ_FIRST(ready); other != NULL; other = next)
	{
		next = TAILQ_NEXT(other, link);
		if (must_wait_for(other, message))
		{
			lease_return(&worker->puller->lease, other, pause_ms);
		}
	}
}

void
settle_return(struct worker *worker, struct message *message, int64_t pause_ms)
{
	settle_followers(worker, message, pause_ms);
	leave_to(worker, message, pause_ms);
}

void
settle_acknowledge(struct worker *worker, struct message *message)
{
	message_set_state(&worker->puller->board, message, MESSAGE_COMMITTED);
	ack_add(&worker->puller->ack, message);
}

void
settle_failure(struct worker *worker)
{
	worker->failed = NULL;
	failure_free(&worker->failure);
}

/* Everything that has not been settled waits again, in its old order. */
void
settle_release(struct worker *worker)
{
	struct message_board *board = &worker->puller->board;
	struct message **rest;
	size_t count = worker->batch != NULL ? batch_rest(worker->batch, &rest) : 0;
	bool failed_in_batch = false;

	for (size_t i = 0; i < count; i++)
	{
		failed_in_batch |= rest[i] == worker->failed;
		message_set_state(board, rest[i], MESSAGE_READY);
	}
	if (worker->failed != NULL && !failed_in_batch)
	{
		message_set_state(board, worker->failed, MESSAGE_READY);
	}
	settle_failure(worker);
	settle_batch(worker);
}

void
settle_pause(struct worker *worker, const struct db_answer *answer)
{
	int64_t pause = backoff_next(&worker->backoff);

	worker->not_before = clock_ms() + pause;
	metrics_failure(&worker->puller->metrics, answer->sqlstate);
	log_event(LOG_WARNING, "transaction_failed", "worker", LOG_INT, (int64_t) worker->db.number,
			  "messages", LOG_INT, (int64_t) worker->run_count, "sqlstate", LOG_TEXT,
			  answer->sqlstate, "err", LOG_TEXT, answer->message, "retry_in", LOG_SECONDS, pause,
			  "hint", LOG_TEXT, "no message is to blame; it is tried again by itself", NULL);
}
