/* SPDX-License-Identifier: PostgreSQL */
#include "work.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "failure.h"
#include "log.h"
#include "memory.h"
#include "record.h"
#include "sqlstate.h"
#include "verdict.h"

/* More than any batch can be: a message has at most 10 MB. */
#define PARAMETER_LIMIT ((size_t) 1 << 30)
/* How long a message rests whose failure could not even be recorded. */
#define UNRECORDED_PAUSE_MS 60000
/* A halted source has one message tried this often. */
#define PROBE_MS 30000

enum
{
	OID_INT4 = 23,
	OID_TEXT = 25
};

bool
work_is_idle(const struct worker *worker)
{
	return worker->batch == NULL && worker->failed == NULL;
}

void
work_take(struct worker *worker, struct message *const *messages, size_t count)
{
	worker->batch = batch_new(messages, count);
	for (size_t i = 0; i < count; i++)
	{
		message_run(&worker->puller->board, messages[i], worker);
	}
}

static void
take_defect(struct worker *worker, struct message *message)
{
	message_run(&worker->puller->board, message, worker);
	worker->failed = message;
	failure_of_defect(&worker->failure, message);
}

/*
 * A message that may have killed its backend: that it is tried is recorded before it runs, so
 * that it is found even if it takes the puller along.
 */
static void
take_suspect(struct worker *worker, struct message *message)
{
	work_take(worker, &message, 1);
	worker->failed = message;
	failure_of_suspect(&worker->failure);
}

void
work_take_alone(struct worker *worker, struct message *message)
{
	if (message->suspect)
	{
		take_suspect(worker, message);
	}
	else
	{
		take_defect(worker, message);
	}
}

bool
work_has_suspect(const struct worker *worker)
{
	struct message **messages;

	return worker->batch != NULL && batch_run(worker->batch, &messages) == 1 &&
		   messages[0]->suspect;
}

/* ---- sending --------------------------------------------------------------------------- */

static void
add_text(struct db_statement *statement, const char *text)
{
	int i = statement->count++;

	statement->types[i] = OID_TEXT;
	statement->values[i] = text;
	statement->sizes[i] = text != NULL ? (int) strlen(text) : 0;
}

static void
add_int(struct db_statement *statement, const uint32_t *wire)
{
	int i = statement->count++;

	statement->types[i] = OID_INT4;
	statement->values[i] = (const char *) wire;
	statement->sizes[i] = sizeof(*wire);
}

static void
add_bytes(struct db_statement *statement, Oid type, const struct buffer *bytes)
{
	int i = statement->count++;

	statement->types[i] = type;
	statement->values[i] = bytes->bytes;
	statement->sizes[i] = (int) bytes->size;
}

static void
run(struct worker *worker, enum work work, struct db_statement *statement, struct buffer *messages,
	char *sql)
{
	worker->work = work;
	worker->started_ms = clock_ms();
	statement->sql = sql;
	db_run(&worker->db, statement);
	buffer_free(messages);
	free(sql);
}

static void
send_run(struct worker *worker, struct message *const *messages, size_t count)
{
	const struct config *config = worker->puller->config;
	struct db_statement statement = {0};
	struct buffer bytes;
	char *sql;

	buffer_init(&bytes, PARAMETER_LIMIT);
	if (!record_append_array(&bytes, worker->db.facts.message_type, messages, count))
	{
		abort(); /* flow.c bounds a batch far below the limit */
	}
	worker->run_count = count;
	statement.lock =
		messages[0]->suspect || contention_is_exclusive(&worker->puller->contention, clock_ms())
			? DB_LOCK_EXCLUSIVE
			: DB_LOCK_SHARED;
	add_bytes(&statement, worker->db.facts.message_array_type, &bytes);
	add_text(&statement, config->handler);
	add_text(&statement, config->source);
	/* With argument types in it, a name is a regprocedure's; without, a regproc's. */
	sql = memory_format("SELECT ordinal, verdict FROM %s.inbox_process_batch($1,"
						" $2::pg_catalog.%s, $3)",
						worker->db.facts.schema,
						strchr(config->handler, '(') != NULL ? "regprocedure" : "regproc");
	run(worker, WORK_RUN, &statement, &bytes, sql);
}

static void
send_failure(struct worker *worker)
{
	const struct failure *failure = &worker->failure;
	uint32_t halt_after = htonl((uint32_t) worker->puller->config->halt_after);
	struct db_statement statement = {0};
	struct buffer bytes;
	char *sql;

	buffer_init(&bytes, PARAMETER_LIMIT);
	if (!record_append(&bytes, worker->failed))
	{
		abort();
	}
	add_bytes(&statement, worker->db.facts.message_type, &bytes);
	add_text(&statement, worker->puller->config->source);
	add_text(&statement, failure->sqlstate);
	add_text(&statement, failure->error);
	add_text(&statement, failure->detail);
	add_text(&statement, failure->hint);
	add_text(&statement, failure->context);
	add_text(&statement, failure->reason);
	add_int(&statement, &halt_after);
	sql = memory_format("SELECT verdict, attempts, retry_after"
						" FROM %s.inbox_fail($1, $2, $3, $4, $5, $6, $7, $8, $9)",
						worker->db.facts.schema);
	run(worker, WORK_FAIL, &statement, &bytes, sql);
}

static void
end_batch(struct worker *worker)
{
	if (worker->batch != NULL)
	{
		batch_free(worker->batch);
		worker->batch = NULL;
	}
}

/* Of the connections of one puller only one queues for the exclusive lock. */
static bool
another_is_exclusive(const struct worker *worker)
{
	const struct puller *puller = worker->puller;

	for (int i = 0; i < puller->workers; i++)
	{
		const struct db *db = &puller->worker[i].db;

		if (db->state == DB_BUSY && db->lock == DB_LOCK_EXCLUSIVE)
		{
			return true;
		}
	}
	return false;
}

bool
work_may_start(const struct worker *worker, int64_t now)
{
	return worker->db.state == DB_IDLE && now >= worker->not_before &&
		   !(contention_is_exclusive(&worker->puller->contention, now) &&
			 another_is_exclusive(worker));
}

void
work_step(struct worker *worker, int64_t now)
{
	struct message **messages;
	size_t count;

	if (!work_may_start(worker, now) || work_is_idle(worker))
	{
		return;
	}
	if (worker->failed != NULL)
	{
		send_failure(worker);
		return;
	}
	count = batch_run(worker->batch, &messages);
	if (count == 0)
	{
		end_batch(worker);
		return;
	}
	send_run(worker, messages, count);
}

/* ---- messages that leave -------------------------------------------------------------- */

static void
leave_to(struct worker *worker, struct message *message, int64_t pause_ms)
{
	if (worker->batch != NULL)
	{
		batch_remove(worker->batch, message);
	}
	lease_return(&worker->puller->lease, message, pause_ms);
}

/* Copies of its key would be judged before it, and followers of its ordering key overtake it. */
static bool
must_wait_for(const struct message *other, const struct message *message)
{
	bool copy = message->key != NULL && other->key != NULL && strcmp(other->key, message->key) == 0;

	return copy || (message->lane != NULL && other->lane == message->lane &&
					other->sequence > message->sequence);
}

/* What was running in this batch and what waits for any connection share the message's pause. */
static void
return_with_company(struct worker *worker, struct message *message, int64_t pause_ms)
{
	struct message_list *ready = &worker->puller->board.list[MESSAGE_READY];
	struct message **rest;
	size_t count = worker->batch != NULL ? batch_rest(worker->batch, &rest) : 0;
	struct message *other;
	struct message *next;

	for (size_t i = 0; i < count; i++)
	{
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
	leave_to(worker, message, pause_ms);
}

static void
acknowledge(struct worker *worker, struct message *message)
{
	message_set_state(&worker->puller->board, message, MESSAGE_COMMITTED);
	ack_add(&worker->puller->ack, message);
}

static void
forget_failed(struct worker *worker)
{
	worker->failed = NULL;
	failure_free(&worker->failure);
}

/* Everything that has not been settled waits again, in its old order. */
static void
release_all(struct worker *worker)
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
	forget_failed(worker);
	end_batch(worker);
}

/* ---- what an answer means ------------------------------------------------------------- */

static void
pause_for(struct worker *worker, const struct db_answer *answer)
{
	int64_t pause = backoff_next(&worker->backoff);

	worker->not_before = clock_ms() + pause;
	log_event(LOG_WARNING, "transaction_failed", "worker", LOG_INT, (int64_t) worker->db.number,
			  "messages", LOG_INT, (int64_t) worker->run_count, "sqlstate", LOG_TEXT,
			  answer->sqlstate, "err", LOG_TEXT, answer->message, "retry_in", LOG_SECONDS, pause,
			  NULL);
}

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

static void
settle_run(struct worker *worker, const PGresult *rows)
{
	struct message **messages;
	size_t count = batch_run(worker->batch, &messages);

	for (size_t i = 0; i < count; i++)
	{
		switch (verdict_of(worker->puller, messages[i], rows, i))
		{
			case VERDICT_DURABLE:
				acknowledge(worker, messages[i]);
				break;
			case VERDICT_LATER:
				lease_return(&worker->puller->lease, messages[i], VERDICT_LATER_PAUSE_MS);
				break;
			case VERDICT_NONE:
				message_forget(&worker->puller->board, messages[i]);
				break;
		}
	}
	adapt_batch_limit(worker);
	backoff_reset(&worker->backoff);
	batch_finish_run(worker->batch);
}

static void
blame(struct worker *worker, struct message *message, const struct db_answer *answer)
{
	worker->failed = message;
	/* The connection lived on: it was not this message. */
	message->suspect = false;
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
		batch_cut(worker->batch, (size_t) answer->ordinal - 1);
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
	pause_for(worker, answer);
	release_all(worker);
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
	bool was_alone = worker->db.lock == DB_LOCK_EXCLUSIVE;

	contention_meet(contention, clock_ms());
	log_event(LOG_INFO, "contention", "worker", LOG_INT, (int64_t) worker->db.number, "messages",
			  LOG_INT, (int64_t) worker->run_count, "sqlstate", LOG_TEXT, answer->sqlstate, "err",
			  LOG_TEXT, answer->message, NULL);
	if (was_alone)
	{
		pause_for(worker, answer);
	}
}

static void
run_failed(struct worker *worker, const struct db_answer *answer)
{
	if (answer->waited_for_lock)
	{
		pause_for(worker, answer);
		return;
	}
	switch (sqlstate_classify(answer->sqlstate))
	{
		case SQLSTATE_TRANSIENT:
			pause_for(worker, answer);
			break;
		case SQLSTATE_CONTENTION:
			run_alone(worker, answer);
			break;
		case SQLSTATE_TIMEOUT:
			shrink(worker, answer);
			break;
		case SQLSTATE_DEPLOYMENT:
			if (answer->ordinal == 0)
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
 * Neither acknowledged nor given back nor counted. With the connection lost, what was in it is
 * tried again while we hold its lease: the claim tells whether it was applied. After a warning
 * the commit stands here but maybe nowhere else, so its messages are left to come back by
 * themselves.
 */
static void
run_unknown(struct worker *worker, const struct db_answer *answer)
{
	struct message **messages;
	size_t count = batch_run(worker->batch, &messages);

	worker->puller->counters.unknown++;
	log_event(LOG_WARNING, "outcome_unknown", "worker", LOG_INT, (int64_t) worker->db.number,
			  "messages", LOG_INT, (int64_t) count, "sqlstate", LOG_TEXT, answer->sqlstate, "err",
			  LOG_TEXT, answer->message, NULL);
	if (worker->db.state == DB_DOWN)
	{
		/* A server that says good-bye is not one that a message has killed. */
		for (size_t i = 0; i < count; i++)
		{
			messages[i]->suspect = !answer->shut_down;
		}
		release_all(worker);
		return;
	}
	for (size_t i = 0; i < count; i++)
	{
		message_forget(&worker->puller->board, messages[i]);
	}
	batch_finish_run(worker->batch);
}

static void
run_answered(struct worker *worker, const struct db_answer *answer)
{
	switch (answer->outcome)
	{
		case DB_COMMITTED:
			settle_run(worker, answer->rows);
			break;
		case DB_FAILED:
			run_failed(worker, answer);
			break;
		case DB_UNKNOWN:
			run_unknown(worker, answer);
			break;
	}
}

/* A bad deploy must not turn a backlog into dead letters: all but a probe rests from now on. */
static void
halt(struct worker *worker)
{
	struct puller *puller = worker->puller;

	if (!puller->halted)
	{
		log_event(LOG_ERROR, "source_halted", "source", LOG_TEXT, puller->config->source,
				  "sqlstate", LOG_TEXT, worker->failure.sqlstate, "err", LOG_TEXT,
				  worker->failure.error, "hint", LOG_TEXT,
				  "messages failed one after another and none was applied: look at the handler; "
				  "one message is tried every 30 s, and the first that is applied ends this",
				  NULL);
	}
	puller->halted = true;
	puller->probe_ms = clock_ms() + PROBE_MS;
	/* The next probe is another message: this one may be bad for reasons of its own. */
	return_with_company(worker, worker->failed, PROBE_MS);
	forget_failed(worker);
	release_all(worker);
}

static void
failure_recorded(struct worker *worker, const PGresult *rows)
{
	struct message *message = worker->failed;
	struct verdict_of_failure verdict =
		verdict_of_failure(worker->puller, message, &worker->failure, rows);

	backoff_reset(&worker->backoff);
	if (verdict.halted)
	{
		halt(worker);
		return;
	}
	if (worker->batch != NULL && message->suspect && !verdict.durable)
	{
		/* It was only noted that it runs now: on with it, in the run that holds it alone. */
		forget_failed(worker);
		return;
	}
	if (verdict.durable)
	{
		if (worker->batch != NULL)
		{
			batch_remove(worker->batch, message);
		}
		acknowledge(worker, message);
	}
	else
	{
		return_with_company(worker, message, verdict.pause_ms);
	}
	forget_failed(worker);
}

static void
failure_not_recorded(struct worker *worker, const struct db_answer *answer)
{
	enum sqlstate_class class = sqlstate_classify(answer->sqlstate);

	if (class == SQLSTATE_TRANSIENT || class == SQLSTATE_CONTENTION)
	{
		pause_for(worker, answer);
		return;
	}
	failure_log(worker->puller, worker->failed, &worker->failure, LOG_WARNING, "message_failed",
				&(struct failure_outcome){.pause_ms = UNRECORDED_PAUSE_MS});
	log_event(LOG_ERROR, "failure_not_recorded", "message_id", LOG_TEXT,
			  worker->failed->message_id, "sqlstate", LOG_TEXT, answer->sqlstate, "err", LOG_TEXT,
			  answer->message, "hint", LOG_TEXT,
			  "the message is not acknowledged; as the extension's owner run: SELECT "
			  "inbox_grant('role', 'puller')",
			  NULL);
	return_with_company(worker, worker->failed, UNRECORDED_PAUSE_MS);
	forget_failed(worker);
}

static void
failure_answered(struct worker *worker, const struct db_answer *answer)
{
	switch (answer->outcome)
	{
		case DB_COMMITTED:
			failure_recorded(worker, answer->rows);
			break;
		case DB_FAILED:
			failure_not_recorded(worker, answer);
			break;
		case DB_UNKNOWN:
			worker->puller->counters.unknown++;
			release_all(worker);
			break;
	}
}

void
work_answered(struct worker *worker, const struct db_answer *answer)
{
	enum work work = worker->work;

	worker->work = WORK_NONE;
	if (work == WORK_FAIL)
	{
		failure_answered(worker, answer);
	}
	else
	{
		run_answered(worker, answer);
	}
	if (worker->puller->stopping)
	{
		work_stop(worker);
	}
}

void
work_stop(struct worker *worker)
{
	struct message_list *ready = &worker->puller->board.list[MESSAGE_READY];
	struct message *message;

	if (worker->db.state != DB_BUSY)
	{
		release_all(worker);
	}
	while ((message = TAILQ_FIRST(ready)) != NULL)
	{
		lease_return(&worker->puller->lease, message, 0);
	}
}

void
work_free(struct worker *worker)
{
	end_batch(worker);
	failure_free(&worker->failure);
}
