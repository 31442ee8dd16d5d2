/* SPDX-License-Identifier: PostgreSQL */
#include "work.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "failure.h"
#include "fault_point.h"
#include "log.h"
#include "memory.h"
#include "record.h"
#include "settle.h"

/* More than any batch can be: a message has at most 10 MB. */
#define PARAMETER_LIMIT ((size_t) 1 << 30)

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
	(void) FAULT_POINT("batch-taken");
	worker->batch = batch_new(messages, count);
	for (size_t i = 0; i < count; i++)
	{
		message_run(&worker->puller->board, messages[i], worker);
	}
}

static void
take_unrunnable(struct worker *worker, struct message *message)
{
	message_run(&worker->puller->board, message, worker);
	worker->failed = message;
	if (message->defect != DEFECT_NONE)
	{
		failure_of_defect(&worker->failure, message);
	}
	else
	{
		failure_of_native(&worker->failure, message);
	}
}

/*
 * A message that may have killed its backend: that it is tried is recorded before it runs, so
 * that it is found even if it takes the puller along. Once for each time: the record counts as an
 * attempt, and one that has no answer may be there.
 */
static void
take_suspect(struct worker *worker, struct message *message)
{
	(void) FAULT_POINT("suspect-taken");
	work_take(worker, &message, 1);
	if (!message->noted)
	{
		worker->failed = message;
		failure_of_suspect(&worker->failure);
	}
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
		take_unrunnable(worker, message);
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
	messages[0]->noted = false;
	statement.lock =
		config->shadow ? DB_LOCK_NONE
		: messages[0]->suspect || contention_is_exclusive(&worker->puller->contention, clock_ms())
			? DB_LOCK_EXCLUSIVE
			: DB_LOCK_SHARED;
	add_bytes(&statement, worker->db.facts.message_array_type, &bytes);
	/* As greeted: the name alone may mean another function by now, which nobody has agreed to. */
	add_text(&statement, worker->db.facts.handler);
	add_text(&statement, config->source);
	sql = memory_format("SELECT ordinal, verdict FROM %s.inbox_process_batch($1,"
						" $2::pg_catalog.regprocedure, $3)",
						worker->db.facts.schema);
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
	(void) FAULT_POINT("failure-send");
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

void
work_look(struct worker *worker, char *sql, int64_t limit_ms)
{
	struct db_statement statement = {.limit_ms = limit_ms};
	struct buffer none;

	buffer_init(&none, 0);
	add_text(&statement, worker->puller->config->source);
	run(worker, WORK_LOOK, &statement, &none, sql);
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
	send_run(worker, messages, count);
}

void
work_stop(struct worker *worker)
{
	struct message_list *ready = &worker->puller->board.list[MESSAGE_READY];
	struct message *message;

	if (worker->db.state != DB_BUSY)
	{
		settle_release(worker);
	}
	while ((message = TAILQ_FIRST(ready)) != NULL)
	{
		lease_return(&worker->puller->lease, message, 0);
	}
}

void
work_free(struct worker *worker)
{
	settle_batch(worker);
	failure_free(&worker->failure);
}
