/* SPDX-License-Identifier: PostgreSQL */
/*
 * One connection to PostgreSQL: connecting, greeting, and one transaction after the other.
 *
 * A transaction is one pipeline and one round trip, also when it fails:
 *
 *	BEGIN; set_config(…); the lock; set_config(…); the statement;
 *	SET CONSTRAINTS ALL IMMEDIATE; Sync; COMMIT (of a shadow: ROLLBACK); Sync
 *
 * The first Sync arms idle_in_transaction_session_timeout and lets COMMIT answer ROLLBACK after
 * an error, so that nothing stays open. Warnings are heard throughout; one is the COMMIT's when the
 * last result in front of the first Sync has been taken. Nothing is sent before the second Sync was
 * read. Deferred checks run by SET CONSTRAINTS, where the statement timeout holds; in COMMIT it
 * would not.
 */
#ifndef INBOX_DB_H
#define INBOX_DB_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "backoff.h"
#include "config.h"
#include "connector.h"

#define DB_PARAMETERS_MAX 9

enum db_state
{
	DB_DOWN,	   /* waits for retry_ms */
	DB_CONNECTING, /* with the connector */
	DB_GREETING,   /* finding out whom we talk to */
	DB_IDLE,
	DB_BUSY /* a transaction has been sent and not been answered */
};

/* What was learnt about the server; strings belong to the connection. */
struct db_facts
{
	char *schema;	 /* of inbox, quoted */
	bool managed;	 /* not an extension, but SQL from inbox-managed.sql */
	char *version;	 /* of the extension's objects, or of the managed tables */
	char *library;	 /* of the extension's library, or of the managed functions */
	char *handler;	 /* the handler's signature, schema-qualified */
	char *system_id; /* of the cluster */
	char *timeline;
	int server_version; /* as PQserverVersion */
	char *lock_key;		/* of the advisory lock of the source's lock group */
	Oid message_type;
	Oid message_array_type;
};

/*
 * The advisory lock of the source's lock group, which whatever runs a handler holds until it
 * commits. Handlers of several connections deadlock in the rows they touch, and every deadlock
 * costs a whole batch; exclusively, one batch runs at a time, whatever the number of pullers.
 */
enum db_lock
{
	DB_LOCK_NONE, /* no handler runs, or nothing of it stays */
	DB_LOCK_SHARED,
	DB_LOCK_EXCLUSIVE
};

enum db_outcome
{
	DB_COMMITTED, /* durable, and answered as such; with --shadow: rolled back as it was meant */
	DB_FAILED,	  /* rolled back for sure */
	DB_UNKNOWN	  /* the connection was lost, or a warning came with the COMMIT */
};

/* How a transaction ended; valid during the callback only. Texts may be NULL. */
struct db_answer
{
	enum db_outcome outcome;
	const PGresult *rows; /* of the statement, when committed */
	const char *sqlstate; /* NULL when the server sent none */
	const char *message;
	const char *detail;
	const char *hint;
	const char *context;
	int ordinal;		  /* 1-based, of the message whose handler raised; 0 when none is named */
	bool shut_down;		  /* the server announced its end, or that of the session */
	bool waited_for_lock; /* it ended while it waited for the advisory lock */
	bool deferred;	 /* it ended behind the call, by what was deferred to its end or to COMMIT */
	int64_t call_us; /* from sending it to the end of the call, of what had to wait for that */
	int64_t took_us; /* and to its end */
};

struct db_statement
{
	const char *sql;
	enum db_lock lock;
	int64_t limit_ms; /* 0: --handler-timeout */
	int count;
	Oid types[DB_PARAMETERS_MAX];
	const char *values[DB_PARAMETERS_MAX]; /* in binary format */
	int sizes[DB_PARAMETERS_MAX];
};

/* Why a greeting did not end well. */
enum db_refusal
{
	DB_REFUSED_FOR_NOW, /* a passing fault: again after a pause */
	DB_REFUSED_MISSING, /* something must be made first: a handler, a grant, the extension */
	DB_REFUSED_MISMATCH /* never right by itself: other version, other handler, other source */
};

struct db;

struct db_events
{
	/* The connection is idle and can take a transaction. */
	void (*ready)(void *context, struct db *db);
	/* A transaction ended; the connection may be gone already (state DB_DOWN). */
	void (*answered)(void *context, struct db *db, const struct db_answer *answer);
	/* A connection could not be made, was refused or was lost while idle; already logged. */
	void (*down)(void *context, struct db *db, enum db_refusal refusal);
};

struct db
{
	int number; /* for logs */
	enum db_state state;
	const struct config *config;
	bool serves; /* it runs the handler, and says so in the greeting */
	struct connector *connector;
	const struct db_events *events;
	void *context;
	PGconn *connection;
	struct db_facts facts;
	struct backoff backoff;
	int64_t retry_ms;	  /* DB_DOWN: not before */
	int64_t greeting_end; /* DB_GREETING: given up then */
	bool flush;			  /* libpq has bytes to send */
	/* the running greeting or transaction */
	int step;
	bool greeted;			 /* the step of the greeting has its answer, */
	enum db_refusal refusal; /* or else this one */
	int error_step;			 /* the step the first error came from */
	enum db_lock lock;
	int syncs;
	int64_t sent_us;   /* when the transaction was sent */
	int64_t called_us; /* when the first Sync was read */
	PGresult *rows;
	PGresult *error;
	bool commit_answered;
	bool commit_warned;
	bool rolled_back;
	bool shut_down; /* the server announced its end, or that of the session */
	bool half_sent; /* no answer will be whole, and the socket is shut down */
};

void db_init(struct db *db, int number, const struct config *config, struct connector *connector,
			 const struct db_events *events, void *context);
void db_free(struct db *db);

/* Asks for a connection, with a password of its own or NULL. */
void db_connect(struct db *db, const char *password);

/* From DB_DOWN to DB_CONNECTING, while a password is being fetched; then db_connect(). */
void db_await_password(struct db *db);

/* There is none: DB_DOWN, until the next attempt. */
void db_no_password(struct db *db);

/* The connector's connection for this db, good or not. */
void db_connected(struct db *db, PGconn *connection);

/* Sends a transaction; only in DB_IDLE. The bytes of the parameters are copied. */
void db_run(struct db *db, const struct db_statement *statement);

/* What to wait for: the socket, or -1, and poll's events. */
int db_socket(const struct db *db, short *events);

/* It broke while it was sent on: no socket will show that, the next db_step() finds it out. */
bool db_is_broken(const struct db *db);

/* Moves data; calls events. */
void db_step(struct db *db);

/* Closes the connection, whatever it does; "reason" is logged. No event is called. */
void db_close(struct db *db, const char *reason);

#endif
