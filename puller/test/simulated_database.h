/* SPDX-License-Identifier: PostgreSQL */
/*
 * A database for simulated pullers: claims, failures and lost connections. A message that is
 * applied before one that was published before it in its ordering key is a failed assertion.
 */
#ifndef INBOX_TEST_SIMULATED_DATABASE_H
#define INBOX_TEST_SIMULATED_DATABASE_H

#include "simulated_failure.h"

static int64_t worker_due[PULLERS_MAX][WORKERS_MAX];
static int slow; /* percent of the transactions */

static int64_t *
due_of(const struct worker *worker)
{
	return &worker_due[worker->puller - pullers][worker - worker->puller->worker];
}

static void
connect_begins(struct worker *worker)
{
	*due_of(worker) = world_ms + 1 + chance(200);
}

/* Copies of a key are one message. */
static int
index_of(const struct message *message)
{
	return atoi(message->key);
}

static void
note_loss(const struct worker *worker)
{
	struct message **messages;
	size_t count = worker->batch != NULL ? batch_run(worker->batch, &messages) : 0;

	for (size_t i = 0; i < count; i++)
	{
		items[index_of(messages[i])].losses++;
	}
}

/* Whatever an old primary does may be lost with it. */
static void
transaction_begins(struct worker *worker)
{
	*due_of(worker) = world_ms + 1 + chance(happens(slow) ? 20000 : 300);
	if (timeline_of(worker) != newest)
	{
		note_loss(worker);
	}
}

/* An earlier message of the ordering key has failed, and does not come before it in this call. */
static bool
is_held_back(struct message *const *messages, size_t place)
{
	int index = index_of(messages[place]);

	for (int i = 0; i < index; i++)
	{
		bool before = false;

		for (size_t j = 0; j < place; j++)
		{
			before |= index_of(messages[j]) == i;
		}
		if (items[index].ordering_key != 0 && items[i].ordering_key == items[index].ordering_key &&
			database->rows[i].attempts > 0 && !database->rows[i].claimed && !before)
		{
			return true;
		}
	}
	return false;
}

/*
 * The order of the ordering key: whatever was published before has ended, or is lost. What an old
 * primary does in the end nobody will see.
 */
static void
check_order(int index)
{
	for (int i = 0; i < index; i++)
	{
		if (ordered && database == &databases[newest] && items[index].ordering_key != 0 &&
			items[i].ordering_key == items[index].ordering_key)
		{
			assert_true(database->rows[i].claimed || missing[i]);
		}
	}
}

static void
apply(int index)
{
	check_order(index);
	database->rows[index] =
		(struct row){.claimed = true, .failed_ms = database->rows[index].failed_ms};
	database->applied_ms = world_ms;
}

static bool
fails(const struct item *item)
{
	return item->kind == KIND_POISON || item->kind == KIND_DEFERRED ||
		   (item->kind == KIND_FLAKY && item->tries < 2);
}

/* The first message whose handler fails, from 1; 0 for none. */
static int
find_failing(struct message *const *messages, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		int index = index_of(messages[i]);

		if (!database->rows[index].claimed && !is_held_back(messages, i) && fails(&items[index]))
		{
			return (int) i + 1;
		}
	}
	return 0;
}

static bool
kills(struct message *const *messages, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		int index = index_of(messages[i]);

		if (!database->rows[index].claimed && !is_held_back(messages, i) &&
			items[index].kind == KIND_KILLER)
		{
			return true;
		}
	}
	return false;
}

static PGresult *
process(struct message *const *messages, size_t count)
{
	PGresult *rows = new_rows(2);

	for (size_t i = 0; i < count; i++)
	{
		int index = index_of(messages[i]);
		const char *verdict = database->rows[index].claimed ? "duplicate"
							  : is_held_back(messages, i)	? "later"
															: "applied";

		if (strcmp(verdict, "applied") == 0)
		{
			apply(index);
		}
		set_int(rows, (int) i, 0, (int) i + 1);
		set_text(rows, (int) i, 1, verdict);
	}
	return rows;
}

static PGresult *
record_failure(const struct worker *worker)
{
	const struct item *item = &items[index_of(worker->failed)];
	const struct row *row = &database->rows[index_of(worker->failed)];
	PGresult *rows = new_rows(3);
	const char *verdict = "duplicate";
	int64_t rest;

	check_blame(item, worker->failure.sqlstate);
	if (!row->claimed)
	{
		verdict = count_failure(item, worker->failure.sqlstate);
	}
	rest = strcmp(verdict, "retrying") == 0 ? row->retry_ms - world_ms : pause_ms(row);
	set_text(rows, 0, 0, verdict);
	set_int(rows, 0, 1, row->attempts);
	set_double(rows, 0, 2, (double) rest / 1000);
	return rows;
}

/* The connection is lost, with what ran on it. */
static void
lose(struct worker *worker)
{
	note_loss(worker);
	lose_connection(worker);
}

/* Committed, and answered, or warned about, or the connection is lost on the way. */
static void
commit(struct worker *worker, PGresult *rows)
{
	if (faulty(10))
	{
		lose(worker);
	}
	else if (faulty(5))
	{
		answer_transaction(worker, (struct db_answer){.outcome = DB_UNKNOWN});
	}
	else
	{
		answer_transaction(worker, (struct db_answer){.outcome = DB_COMMITTED, .rows = rows});
	}
	PQclear(rows);
}

static void
refuse(struct worker *worker, const char *sqlstate, int ordinal)
{
	answer_transaction(worker, (struct db_answer){.outcome = DB_FAILED,
												  .sqlstate = sqlstate,
												  .message = "simulated",
												  .ordinal = ordinal,
												  .deferred = ordinal == 0});
}

/* Through no fault of the messages, whichever is named. */
static void
refuse_for_now(struct worker *worker, struct message *const *messages, size_t count)
{
	static const char *const passing[] = {"53300", "40P01", "55P03", "57014", "25006"};
	const char *sqlstate = passing[chance(5)];

	for (size_t i = 0; i < count; i++)
	{
		items[index_of(messages[i])].timeouts += strcmp(sqlstate, "57014") == 0;
	}
	refuse(worker, sqlstate, happens(50) ? 1 + chance((int) count) : 0);
}

static void
answer_run(struct worker *worker)
{
	struct message **messages;
	size_t count = batch_run(worker->batch, &messages);
	int failing = find_failing(messages, count);

	if (kills(messages, count) || is_away(worker) || faulty(10))
	{
		lose(worker);
	}
	else if (faulty(20))
	{
		refuse_for_now(worker, messages, count);
	}
	else if (failing > 0)
	{
		struct item *item = &items[index_of(messages[failing - 1])];
		bool named = item->kind != KIND_DEFERRED;

		item->tries++;
		refuse(worker, named ? "P0001" : "23503", named ? failing : 0);
	}
	else
	{
		commit(worker, process(messages, count));
	}
}

static void
answer_worker(struct worker *worker)
{
	if (worker->db.state == DB_CONNECTING)
	{
		world_ms < database_away || faulty(30) ? not_connected(worker) : connect_to_newest(worker);
		return;
	}
	database = &databases[timeline_of(worker)];
	if (worker->work == WORK_FAIL)
	{
		is_away(worker) ? lose(worker)
		: faulty(10)	? refuse(worker, "53300", 0)
						: commit(worker, record_failure(worker));
	}
	else
	{
		answer_run(worker);
	}
}

/* Nobody will hear how it ended. */
static void
abandon(struct worker *worker)
{
	struct message **messages;
	size_t count;

	if (worker->db.state != DB_BUSY || is_away(worker) || happens(50))
	{
		return;
	}
	database = &databases[timeline_of(worker)];
	if (worker->work == WORK_FAIL)
	{
		PQclear(record_failure(worker));
		return;
	}
	count = batch_run(worker->batch, &messages);
	if (!kills(messages, count) && find_failing(messages, count) == 0)
	{
		PQclear(process(messages, count));
	}
}

/* The first that is due. */
static bool
answer_workers(void)
{
	for (int i = 0; i < puller_count; i++)
	{
		for (int j = 0; j < pullers[i].workers; j++)
		{
			struct worker *worker = &pullers[i].worker[j];
			bool waits = worker->db.state == DB_CONNECTING || worker->db.state == DB_BUSY;

			if (waits && *due_of(worker) <= world_ms)
			{
				answer_worker(worker);
				return true;
			}
		}
	}
	return false;
}

#endif
