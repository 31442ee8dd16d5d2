/* SPDX-License-Identifier: PostgreSQL */
#include "transaction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fault_point.h"
#include "log.h"
#include "memory.h"
#include "sqlstate.h"

/* Steps of the pipeline. */
enum
{
	STEP_LOCK = 2,
	STEP_STATEMENT = 4,
	STEP_COMMIT = 6
};

/*
 * A crossing with another connection's rows is found sooner by this than by deadlock_timeout, and
 * the cure, running alone, costs less than waiting.
 */
#define SHARED_LOCK_TIMEOUT_MS 100

/*
 * Settings last for the transaction only: a pooler hands the session to somebody else next. These
 * hold while the advisory lock is waited for, which may take as long as others' handlers do.
 * From PostgreSQL 17 on transaction_timeout bounds even a COMMIT that runs deferred triggers.
 * client_connection_check_interval ends a backend whose puller is gone. Warnings have to be heard:
 * those of the COMMIT, and the good-bye of a server that is stopped at once.
 */
static char *
write_first_settings(const struct db *db, int64_t limit_ms)
{
	long long handler = (long long) limit_ms;
	char *limit =
		db->facts.server_version >= 170000
			? memory_format(", pg_catalog.set_config('transaction_timeout', '%lld', true)",
							5 * handler)
			: memory_copy_text("");
	char *sql =
		memory_format("SELECT pg_catalog.set_config('statement_timeout', '%lld', true),"
					  " pg_catalog.set_config('lock_timeout', '%lld', true),"
					  " pg_catalog.set_config('idle_in_transaction_session_timeout', '%lld', true),"
					  " pg_catalog.set_config('client_connection_check_interval', '1000', true),"
					  " pg_catalog.set_config('client_min_messages', 'warning', true)%s",
					  2 * handler, 2 * handler, handler, limit);

	free(limit);
	return sql;
}

/* These hold for the statement itself. */
static char *
write_settings(const struct db *db, enum db_lock lock, int64_t limit_ms)
{
	int64_t wait = lock == DB_LOCK_SHARED ? SHARED_LOCK_TIMEOUT_MS : db->config->lock_timeout;

	return memory_format("SELECT pg_catalog.set_config('statement_timeout', '%lld', true),"
						 " pg_catalog.set_config('lock_timeout', '%lld', true)",
						 (long long) limit_ms, (long long) wait);
}

static char *
write_lock(const struct db *db, enum db_lock lock)
{
#ifdef INBOX_WITHOUT_LOCK
	lock = DB_LOCK_NONE;
#endif
	return lock == DB_LOCK_NONE
			   ? memory_copy_text("SELECT")
			   : memory_format("SELECT pg_catalog.pg_advisory_xact_lock%s(%s)",
							   lock == DB_LOCK_SHARED ? "_shared" : "", db->facts.lock_key);
}

static bool
send_plain(struct db *db, const char *sql)
{
	return PQsendQueryParams(db->connection, sql, 0, NULL, NULL, NULL, NULL, 1) == 1;
}

static bool
send_statement(struct db *db, const struct db_statement *statement)
{
	static const int binary[DB_PARAMETERS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1};

	return PQsendQueryParams(db->connection, statement->sql, statement->count, statement->types,
							 statement->values, statement->sizes, binary, 1) == 1;
}

bool
transaction_send(struct db *db, const struct db_statement *statement)
{
	int64_t limit = statement->limit_ms != 0 ? statement->limit_ms : db->config->handler_timeout;
	char *first_settings = write_first_settings(db, limit);
	char *lock = write_lock(db, statement->lock);
	char *settings = write_settings(db, statement->lock, limit);
	bool sent;

	transaction_clear(db);
	db->lock = statement->lock;
	db->sent_us = clock_us();
	db->called_us = db->sent_us;
	sent = !FAULT_POINT("transaction-send") &&
		   send_plain(db, "BEGIN ISOLATION LEVEL READ COMMITTED") &&
		   send_plain(db, first_settings) && send_plain(db, lock) && send_plain(db, settings) &&
		   send_statement(db, statement) && send_plain(db, "SET CONSTRAINTS ALL IMMEDIATE") &&
		   PQpipelineSync(db->connection) == 1 && !FAULT_POINT("commit-send") &&
		   send_plain(db, db->config->shadow ? "ROLLBACK" : "COMMIT") &&
		   PQpipelineSync(db->connection) == 1;
	free(first_settings);
	free(lock);
	free(settings);
	db->half_sent = !sent;
	return sent;
}

void
transaction_clear(struct db *db)
{
	PQclear(db->rows);
	PQclear(db->error);
	db->rows = NULL;
	db->error = NULL;
	db->step = 0;
	db->error_step = -1;
	db->syncs = 0;
	db->commit_answered = false;
	db->commit_warned = false;
	db->rolled_back = false;
	db->shut_down = false;
	db->half_sent = false;
}

static bool
is_warning(const PGresult *notice)
{
	/* The field that is never translated; absent from servers before 9.6. */
	const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);

	return severity == NULL || strcmp(severity, "WARNING") == 0;
}

static bool
is_shutdown(const char *sqlstate)
{
	return sqlstate != NULL && strncmp(sqlstate, "57P0", 4) == 0;
}

/*
 * libpq hands out a warning when it has read it, which may be before the result in front of it was
 * taken, but no more than that one. So one that comes after the last result in front of the Sync
 * was taken is one of the COMMIT.
 */
static bool
is_of_commit(const struct db *db)
{
	return db->state == DB_BUSY && db->step >= STEP_COMMIT;
}

void
transaction_notice(struct db *db, const PGresult *notice)
{
	const char *message = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);

	if (!is_warning(notice))
	{
		return;
	}
	/* An immediate shutdown says good-bye with a warning. */
	db->shut_down |= is_shutdown(PQresultErrorField(notice, PG_DIAG_SQLSTATE));
	/*
	 * "canceling wait for synchronous replication" is a warning beside a successful COMMIT: the
	 * standby may not have it, so nothing of it may be acknowledged.
	 */
#ifndef INBOX_WITHOUT_COMMIT_WARNING
	db->commit_warned |= is_of_commit(db);
#endif
	/* What handlers warn of is in the server's log. */
	log_event(is_of_commit(db) || db->shut_down ? LOG_WARNING : LOG_DEBUG, "db_warning", "worker",
			  LOG_INT, (int64_t) db->number, "sqlstate", LOG_TEXT,
			  PQresultErrorField(notice, PG_DIAG_SQLSTATE), "err", LOG_TEXT, message, NULL);
}

static bool
is_fatal(const PGresult *error)
{
	const char *severity = PQresultErrorField(error, PG_DIAG_SEVERITY_NONLOCALIZED);

	return severity != NULL && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

/* Keeps the first error; what follows it in a pipeline is only its echo. */
static void
keep_error(struct db *db, PGresult *error)
{
	if (db->error == NULL || (is_fatal(error) && !is_fatal(db->error)))
	{
		PQclear(db->error);
		db->error = error;
		db->error_step = db->step;
	}
	else
	{
		PQclear(error);
	}
}

static void
read_command(struct db *db, const PGresult *result)
{
	const char *tag = PQcmdStatus((PGresult *) result);

	if (db->syncs == 1)
	{
		FAULT_CUT("commit-answered", PQsocket(db->connection));
		db->commit_answered = strcmp(tag, "COMMIT") == 0;
		db->rolled_back = strcmp(tag, "ROLLBACK") == 0;
	}
}

static void
take_result(struct db *db, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE)
	{
		keep_error(db, result);
		return;
	}
	if (status == PGRES_TUPLES_OK && db->syncs == 0 && db->step == STEP_STATEMENT)
	{
		FAULT_CUT("call-answered", PQsocket(db->connection));
		PQclear(db->rows);
		db->rows = result;
		return;
	}
	if (status == PGRES_PIPELINE_SYNC)
	{
		db->called_us = db->syncs == 0 ? clock_us() : db->called_us;
		db->syncs++;
	}
	else if (status == PGRES_COMMAND_OK)
	{
		read_command(db, result);
	}
	PQclear(result);
}

/*
 * The last line of the context that is ours names the message: the outermost call counts, whatever
 * a handler that calls inbox_process itself has added before.
 */
static int
read_ordinal(const char *context)
{
	static const char mark[] = "inbox: {\"ordinal\":";
	int ordinal = 0;

	for (const char *line = context; line != NULL; line = strchr(line, '\n'))
	{
		line += *line == '\n';
		if (strncmp(line, mark, sizeof(mark) - 1) == 0)
		{
			ordinal = (int) strtol(line + sizeof(mark) - 1, NULL, 10);
		}
	}
	return ordinal;
}

static void
describe_error(const struct db *db, struct db_answer *answer)
{
	answer->sqlstate = PQresultErrorField(db->error, PG_DIAG_SQLSTATE);
	answer->message = PQresultErrorField(db->error, PG_DIAG_MESSAGE_PRIMARY);
	if (answer->message == NULL)
	{
		answer->message = PQresultErrorMessage(db->error);
	}
	answer->detail = PQresultErrorField(db->error, PG_DIAG_MESSAGE_DETAIL);
	answer->hint = PQresultErrorField(db->error, PG_DIAG_MESSAGE_HINT);
	answer->context = PQresultErrorField(db->error, PG_DIAG_CONTEXT);
	answer->ordinal = read_ordinal(answer->context);
	answer->shut_down |= is_shutdown(answer->sqlstate);
	answer->waited_for_lock = db->error_step == STEP_LOCK;
	answer->deferred = db->error_step > STEP_STATEMENT;
}

/*
 * COMMIT of a failed transaction succeeds: only its tag tells that it was a ROLLBACK. A shadow's ends
 * as it should by ROLLBACK, as nothing is promised of it.
 */
static bool
is_committed(const struct db *db)
{
#ifndef INBOX_WITHOUT_COMMIT_TAG
	return (db->config->shadow ? db->rolled_back : db->commit_answered) && db->error == NULL &&
		   db->rows != NULL;
#else
	return (db->commit_answered || db->rolled_back) && db->rows != NULL;
#endif
}

static enum db_outcome
judge(const struct db *db)
{
	bool healthy = PQstatus(db->connection) == CONNECTION_OK && db->syncs == 2 &&
				   PQtransactionStatus(db->connection) == PQTRANS_IDLE;

#ifdef INBOX_WITHOUT_UNKNOWN_OUTCOME
	if (db->rows != NULL)
	{
		return DB_COMMITTED;
	}
#endif
	if (!healthy || (db->error != NULL && is_fatal(db->error)))
	{
		return DB_UNKNOWN;
	}
	if (is_committed(db))
	{
		return db->commit_warned ? DB_UNKNOWN : DB_COMMITTED;
	}
	/*
	 * An ERROR in answer to COMMIT rolls back just like the tag ROLLBACK, and for sure, whatever a
	 * handler that sets client_min_messages has warned of before.
	 */
	return db->rolled_back || db->error != NULL ? DB_FAILED : DB_UNKNOWN;
}

static void
describe(const struct db *db, struct db_answer *answer)
{
	*answer = (struct db_answer){.shut_down = db->shut_down};
	if (db->error != NULL)
	{
		describe_error(db, answer);
	}
	else if (db->commit_warned)
	{
		answer->message = "a warning came with the COMMIT, so its durability is not known";
	}
	else if (PQstatus(db->connection) != CONNECTION_OK)
	{
		answer->message = PQerrorMessage(db->connection);
	}
	answer->call_us = db->called_us - db->sent_us;
	answer->took_us = clock_us() - db->sent_us;
	answer->outcome = judge(db);
	answer->rows = answer->outcome == DB_COMMITTED ? db->rows : NULL;
}

bool
transaction_read(struct db *db, struct db_answer *answer)
{
	while (db->syncs < 2 && PQisBusy(db->connection) == 0)
	{
		PGresult *result = PQgetResult(db->connection);

		if (result != NULL)
		{
			take_result(db, result);
		}
		/* Of half a pipeline there may be no more than NULLs: the end of the connection is next. */
		else if (PQstatus(db->connection) != CONNECTION_OK || db->half_sent)
		{
			break;
		}
		else
		{
			db->step++;
		}
	}
	if (db->syncs < 2 && PQstatus(db->connection) == CONNECTION_OK)
	{
		return false;
	}
	/* The NULL behind the last Sync; libpq calls the connection idle only then. */
	if (db->syncs == 2)
	{
		PQclear(PQgetResult(db->connection));
	}
	describe(db, answer);
	return true;
}
