/* SPDX-License-Identifier: PostgreSQL */
#include "recording.h"

#include "clock.h"
#include "failure.h"
#include "fault_point.h"
#include "lease.h"
#include "log.h"
#include "settle.h"
#include "sqlstate.h"
#include "verdict.h"

/* How long a message rests whose failure could not even be recorded. */
#define UNRECORDED_PAUSE_MS 60000

/* A bad deploy must not turn a backlog into dead letters: all but a probe rests from now on. */
static void
halt(struct worker *worker, int64_t pause_ms)
{
	struct puller *puller = worker->puller;

	if (!puller->halted)
	{
		log_event(LOG_ERROR, "source_halted", "source", LOG_TEXT, puller->config->source,
				  "sqlstate", LOG_TEXT, worker->failure.sqlstate, "err", LOG_TEXT,
				  worker->failure.error, "hint", LOG_TEXT,
				  "messages failed one after another and none was applied: look at the handler; "
				  "one message is tried now and then, and the first that is applied ends this",
				  NULL);
		backoff_reset(&puller->probe);
	}
	puller->halted = true;
	puller->halted_ms = clock_ms();
	puller->probe_ms = puller->halted_ms + backoff_next(&puller->probe);
	/* It comes again behind what waits, so the next probe is another message if there is one. */
	settle_return(worker, worker->failed, pause_ms);
	settle_failure(worker);
	settle_release(worker);
}

static void
recorded(struct worker *worker, const PGresult *rows)
{
	struct message *message = worker->failed;
	struct verdict_of_failure verdict =
		verdict_of_failure(worker->puller, message, &worker->failure, rows);

	bool only_noted = worker->batch != NULL && message->suspect;

	if (worker->puller->config->shadow)
	{
		/*
		 * Nothing counts its attempts, so there is no other one; but what was among others when a
		 * connection was lost has not been tried alone.
		 */
		bool tried = !only_noted || message->losses > 1;

		if (tried)
		{
			shadow_fail(&worker->puller->shadow, &worker->failure, message);
		}
		verdict = (struct verdict_of_failure){.durable = tried};
	}

	worker->puller->progress_ms = clock_ms();
	backoff_reset(&worker->backoff);
	if (verdict.halted)
	{
		halt(worker, verdict.pause_ms);
		return;
	}
	if (only_noted && !verdict.durable)
	{
		/* It was only noted that it runs now: on with it, in the run that holds it alone. */
		message->noted = true;
		settle_failure(worker);
		return;
	}
	if (verdict.durable)
	{
		if (worker->batch != NULL)
		{
			batch_remove(worker->batch, message);
		}
		settle_acknowledge(worker, message);
	}
	else
	{
		settle_return(worker, message, verdict.pause_ms);
	}
	settle_failure(worker);
}

static void
not_recorded(struct worker *worker, const struct db_answer *answer)
{
	enum sqlstate_class class = sqlstate_classify(answer->sqlstate);

	if (class == SQLSTATE_TRANSIENT || class == SQLSTATE_CONTENTION)
	{
		settle_pause(worker, answer);
		return;
	}
	failure_log(worker->puller, worker->failed, &worker->failure, LOG_WARNING, "message_failed",
				&(struct failure_outcome){.pause_ms = UNRECORDED_PAUSE_MS});
	log_event(LOG_ERROR, "failure_not_recorded", "message_id", LOG_TEXT, worker->failed->message_id,
			  "sqlstate", LOG_TEXT, answer->sqlstate, "err", LOG_TEXT, answer->message, "hint",
			  LOG_TEXT,
			  "the message is not acknowledged; as the extension's owner run: SELECT "
			  "inbox_grant('role', 'puller')",
			  NULL);
	settle_return(worker, worker->failed, UNRECORDED_PAUSE_MS);
	settle_failure(worker);
}

void
recording_answered(struct worker *worker, const struct db_answer *answer)
{
	(void) FAULT_POINT("failure-answered");
	switch (answer->outcome)
	{
		case DB_COMMITTED:
			recorded(worker, answer->rows);
			break;
		case DB_FAILED:
			not_recorded(worker, answer);
			break;
		case DB_UNKNOWN:
			worker->puller->metrics.unknown++;
			worker->failed->noted = worker->failed->suspect && worker->batch != NULL;
			settle_release(worker);
			break;
	}
}
