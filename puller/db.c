/* SPDX-License-Identifier: PostgreSQL */
#include "db.h"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "fault_point.h"
#include "greeting.h"
#include "log.h"
#include "memory.h"
#include "transaction.h"

#define RETRY_FIRST_MS 200
#define RETRY_LIMIT_MS 10000
/* What a person must put right is looked at again this often. */
#define PROBE_MS 30000
/* A server that accepts and then says nothing is given up after this. */
#define GREETING_LIMIT_MS 30000

void
db_init(struct db *db, int number, const struct config *config, struct connector *connector,
		const struct db_events *events, void *context)
{
	*db = (struct db){
		.number = number,
		.state = DB_DOWN,
		.config = config,
		.serves = !config->as_dead_letters && !config->check,
		.connector = connector,
		.events = events,
		.context = context,
		.backoff = {.first_ms = RETRY_FIRST_MS, .limit_ms = RETRY_LIMIT_MS},
	};
}

static void
drop_connection(struct db *db)
{
	transaction_clear(db);
	PQfinish(db->connection);
	db->connection = NULL;
	db->flush = false;
	greeting_free_facts(&db->facts);
	db->state = DB_DOWN;
}

void
db_free(struct db *db)
{
	drop_connection(db);
}

void
db_close(struct db *db, const char *reason)
{
	if (db->connection == NULL)
	{
		return;
	}
	log_event(LOG_INFO, "db_closed", "worker", LOG_INT, (int64_t) db->number, "reason", LOG_TEXT,
			  reason, NULL);
	drop_connection(db);
	db->retry_ms = clock_ms() + backoff_next(&db->backoff);
}

void
db_connect(struct db *db, const char *password)
{
	db->state = DB_CONNECTING;
	connector_ask(db->connector, db, password);
}

/* Ends in DB_DOWN with the time of the next attempt set. */
static void
go_down(struct db *db, enum db_refusal refusal)
{
	int64_t pause = refusal == DB_REFUSED_FOR_NOW ? backoff_next(&db->backoff) : PROBE_MS;

	drop_connection(db);
	db->retry_ms = clock_ms() + pause;
	db->events->down(db->context, db, refusal);
}

static void
log_failure(const struct db *db, const char *event)
{
	/* libpq's text ends with a line break. */
	const char *text = PQerrorMessage(db->connection);
	size_t size = strlen(text);
	char *error = memory_copy(text, size > 0 && text[size - 1] == '\n' ? size - 1 : size);

	log_event(LOG_WARNING, event, "worker", LOG_INT, (int64_t) db->number, "err", LOG_TEXT, error,
			  "hint", LOG_TEXT,
			  "it is tried again by itself; check --dbname, the PG* environment and the server",
			  NULL);
	free(error);
}

void
db_await_password(struct db *db)
{
	db->state = DB_CONNECTING;
}

void
db_no_password(struct db *db)
{
	go_down(db, DB_REFUSED_FOR_NOW);
}

static void
see_notice(void *context, const PGresult *notice)
{
	transaction_notice(context, notice);
}

void
db_connected(struct db *db, PGconn *connection)
{
	db->connection = connection;
	if (PQstatus(connection) != CONNECTION_OK || FAULT_POINT("connect"))
	{
		log_failure(db, "db_connect_failed");
		go_down(db, DB_REFUSED_FOR_NOW);
		return;
	}
	db->state = DB_GREETING;
	PQsetNoticeReceiver(connection, see_notice, db);
	db->greeting_end = clock_ms() + GREETING_LIMIT_MS;
	db->flush = true;
	if (PQsetnonblocking(connection, 1) != 0 || !greeting_start(db))
	{
		log_failure(db, "db_connection_lost");
		go_down(db, DB_REFUSED_FOR_NOW);
	}
}

void
db_run(struct db *db, const struct db_statement *statement)
{
	db->state = DB_BUSY;
	if (!transaction_send(db, statement))
	{
		log_failure(db, "db_send_failed");
		/* Half a pipeline would never be answered. */
		shutdown(PQsocket(db->connection), SHUT_RDWR);
	}
	db->flush = true;
}

bool
db_is_broken(const struct db *db)
{
	return db->state == DB_BUSY && PQstatus(db->connection) != CONNECTION_OK;
}

int
db_socket(const struct db *db, short *events)
{
	*events = POLLIN;
	if (db->connection == NULL)
	{
		return -1;
	}
	if (db->flush)
	{
		*events |= POLLOUT;
	}
	return PQsocket(db->connection);
}

/*
 * Sends and receives what it can without waiting. Bytes that OpenSSL has read and decrypted do
 * not show on the socket any more, so they are asked for until none is left.
 */
static void
move_data(struct db *db)
{
	SSL *tls = PQgetssl(db->connection);

	if (db->flush)
	{
		db->flush = PQflush(db->connection) == 1;
		if (db->state == DB_BUSY)
		{
			FAULT_CUT("transaction-sent", PQsocket(db->connection));
		}
	}
	do
	{
		if (PQconsumeInput(db->connection) != 1)
		{
			break;
		}
	} while (tls != NULL && SSL_pending(tls) > 0);
}

static void
step_greeting(struct db *db)
{
	enum db_refusal refusal;

	switch (greeting_read(db, &refusal))
	{
		case GREETING_GOES_ON:
			if (clock_ms() >= db->greeting_end)
			{
				log_event(LOG_WARNING, "db_silent", "worker", LOG_INT, (int64_t) db->number, "err",
						  LOG_TEXT, "the server accepted the connection and then said nothing",
						  "hint", LOG_TEXT,
						  "it is tried again by itself; see in pg_stat_activity what the session "
						  "waits for, such as a lock on a system catalog",
						  NULL);
				go_down(db, DB_REFUSED_FOR_NOW);
			}
			break;
		case GREETING_DONE:
			FAULT_CUT("greeted", PQsocket(db->connection));
			db->state = DB_IDLE;
			backoff_reset(&db->backoff);
			log_event(LOG_INFO, "db_connected", "worker", LOG_INT, (int64_t) db->number, "handler",
					  LOG_TEXT, db->facts.handler, db->facts.managed ? "managed" : "extension",
					  LOG_TEXT, db->facts.version, "server", LOG_INT,
					  (int64_t) db->facts.server_version, NULL);
			db->events->ready(db->context, db);
			break;
		case GREETING_FAILED:
			go_down(db, refusal);
			break;
	}
}

/* The answer's texts live in results that transaction_clear() frees: after the event. */
static void
step_transaction(struct db *db)
{
	struct db_answer answer;

	if (!transaction_read(db, &answer))
	{
		return;
	}
	if (PQstatus(db->connection) != CONNECTION_OK)
	{
		PGconn *connection = db->connection;

		log_failure(db, "db_connection_lost");
		/* Its results outlive the connection; the event may look at the state. */
		db->connection = NULL;
		db->state = DB_DOWN;
		db->retry_ms = clock_ms() + backoff_next(&db->backoff);
		db->events->answered(db->context, db, &answer);
		PQfinish(connection);
		drop_connection(db);
		return;
	}
	db->state = DB_IDLE;
	db->events->answered(db->context, db, &answer);
}

static void
step_idle(struct db *db)
{
	if (PQstatus(db->connection) != CONNECTION_OK)
	{
		log_failure(db, "db_connection_lost");
		go_down(db, DB_REFUSED_FOR_NOW);
	}
}

void
db_step(struct db *db)
{
	if (db->connection == NULL)
	{
		return;
	}
	move_data(db);
	switch (db->state)
	{
		case DB_GREETING:
			step_greeting(db);
			break;
		case DB_BUSY:
			step_transaction(db);
			break;
		case DB_IDLE:
			step_idle(db);
			break;
		case DB_DOWN:
		case DB_CONNECTING:
			break;
	}
}
