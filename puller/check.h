/* SPDX-License-Identifier: PostgreSQL */
/*
 * --check: looks at everything that the puller depends on, pulls nothing and changes nothing.
 *
 *	check_database.c      the server, which inbox, inbox_check(), durability, timeouts
 *	check_rights.c        what the role may do, and what it had better not
 *	check_source.c        the handler, and what the source was last served with
 *	check_credentials.c   who asks Pub/Sub
 *	check_subscription.c  what is asked for
 *
 * It is not the loop: it waits for each answer, and for none of them for long. What the code it
 * shares with the puller has to say about a failure goes to the log, so the log is read here.
 */
#ifndef INBOX_CHECK_H
#define INBOX_CHECK_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "auth.h"
#include "check_report.h"
#include "config.h"
#include "db.h"
#include "fault.h"
#include "http.h"
#include "pubsub.h"

/* The longest wait for a token. */
#define CHECK_LIMIT_MS 15000

struct check
{
	const struct config *config;
	struct check_report report;
	struct fault complaint; /* the last that was logged, or that a question was answered with */
	char sqlstate[6];		/* of it, or empty */
	struct http *http;
	int statement_ms;	   /* the longest that check_ask() takes */
	PGconn *connection;	   /* NULL: the database cannot be asked */
	struct db_facts facts; /* "schema" is NULL where there is no inbox */
	bool source_known;	   /* the row of the source was read, or there is none yet */
	int64_t dedup_ms;	   /* how long it keeps keys; 0: for ever */
};

/* What Pub/Sub answered. */
struct check_answer
{
	bool done;
	enum pubsub_outcome outcome;
	long status;				  /* 0: none came */
	char *error;				  /* or NULL */
	struct json_object *document; /* of an OK answer */
};

/* Writes the report. Returns the status to exit with. */
int check_run(const struct config *config, FILE *out);

/* ---- for the parts ------------------------------------------------------------------------ */

/* Opens what the parts need and diverts the log; ends both, and returns as check_run() does. */
void check_begin(struct check *check, struct auth *auth, const struct config *config, FILE *out);
int check_end(struct check *check, struct auth *auth);

/* Each reports its facts. */
void check_database(struct check *check);
void check_rights(struct check *check);
void check_source(struct check *check);
/* False when there is no token to ask Pub/Sub with. */
bool check_credentials(struct check *check, struct auth *auth);
void check_subscription(struct check *check, struct auth *auth);

/* The first two facts of check_database(): the connection, and that inbox can be called. */
bool check_connection(struct check *check);
bool check_inbox(struct check *check);

/* Reports the complaint as a problem, under this name. */
void check_complain(struct check *check, const char *name);

/*
 * Asks the database in a transaction of its own that cannot write. NULL, with a complaint, when
 * the answer is an error; else for PQclear(). Names are looked for in pg_catalog alone, unless
 * "as_the_role": then as the role is set up.
 */
PGresult *check_ask(struct check *check, bool as_the_role, const char *sql, int count,
					const char *const *values);

/* Waits for an answer of the shape of a greeting; false, with a complaint, when none comes. */
bool check_await(struct check *check);

/* Moves HTTP, and waits for some. */
void check_step_http(struct check *check);

/* Every request has a limit of its own, and ends in an answer. */
void check_await_answer(struct check *check, const struct check_answer *answer);

/* For a pubsub_callback: the context is made by check_answer_new(). */
void check_take_answer(void *context, const struct pubsub_answer *answer);
void *check_answer_new(struct check_answer *answer);
void check_answer_free(struct check_answer *answer);

/* What a log's hint says, without the promise that it is tried again; NULL when nothing is left. */
char *check_remedy(const char *hint);

/* "30 s", "10 min", "7 d", to be freed. */
char *check_time(int64_t milliseconds);

#endif
