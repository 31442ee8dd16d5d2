/* SPDX-License-Identifier: PostgreSQL */
#include "connector.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "memory.h"

struct attempt
{
	STAILQ_ENTRY(attempt) link;
	void *owner;
	char *password; /* or NULL: libpq knows */
	PGconn *connection;
};

STAILQ_HEAD(attempts, attempt);

struct connector
{
	const char *conninfo;
	int event;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t asked;
	struct attempts waiting;
	struct attempts ended;
	bool busy;
	bool stopping;
};

/* At least "require"; NULL where the environment asks for that or more. */
static const char *
sslmode_for_password(void)
{
	const char *mode = getenv("PGSSLMODE");
	bool strict =
		mode != NULL && (strcmp(mode, "require") == 0 || strncmp(mode, "verify-", 7) == 0);

	return strict ? NULL : "require";
}

/*
 * Of a keyword that is given twice the last counts, so what stands before dbname is our default
 * and what stands behind it is not to be changed. Keepalives find a dead peer within a minute.
 */
PGconn *
connector_open(const char *conninfo, const char *password)
{
	static const char *const keywords[] = {"connect_timeout",
										   "keepalives_idle",
										   "keepalives_interval",
										   "keepalives_count",
										   "tcp_user_timeout",
										   "sslmode",
										   "dbname",
										   "fallback_application_name",
										   "client_encoding",
										   "password",
										   NULL};
	const char *values[] = {"10",	  "30",
							"10",	  "3",
							"60000",  password != NULL ? sslmode_for_password() : NULL,
							conninfo, "inbox-puller",
							"UTF8",	  password,
							NULL};
	PGconn *connection;

	if (getenv("PGCONNECT_TIMEOUT") != NULL)
	{
		values[0] = NULL;
	}
#ifdef INBOX_WITHOUT_CLIENT_ENCODING
	values[8] = NULL;
#endif
	connection = PQconnectdbParams(keywords, values, 1);
	if (connection == NULL)
	{
		memory_exhausted(); /* or a worker would wait for it for ever */
	}
	return connection;
}

static void
forget_password(struct attempt *attempt)
{
	memory_forget(attempt->password);
	attempt->password = NULL;
}

static struct attempt *
next_attempt(struct connector *connector)
{
	struct attempt *attempt;

	pthread_mutex_lock(&connector->mutex);
	connector->busy = false;
	while (STAILQ_EMPTY(&connector->waiting) && !connector->stopping)
	{
		pthread_cond_wait(&connector->asked, &connector->mutex);
	}
	attempt = STAILQ_FIRST(&connector->waiting);
	if (attempt != NULL)
	{
		STAILQ_REMOVE_HEAD(&connector->waiting, link);
		connector->busy = true;
	}
	pthread_mutex_unlock(&connector->mutex);
	return attempt;
}

static void
hand_over(struct connector *connector, struct attempt *attempt)
{
	uint64_t one = 1;

	pthread_mutex_lock(&connector->mutex);
	STAILQ_INSERT_TAIL(&connector->ended, attempt, link);
	pthread_mutex_unlock(&connector->mutex);
	/* Fails only when the counter is full, and then the loop is awake anyhow. */
	if (write(connector->event, &one, sizeof(one)) < 0)
	{
	}
}

static void *
run(void *argument)
{
	struct connector *connector = argument;
	struct attempt *attempt;

	while ((attempt = next_attempt(connector)) != NULL)
	{
		attempt->connection = connector_open(connector->conninfo, attempt->password);
		forget_password(attempt);
		hand_over(connector, attempt);
	}
	return NULL;
}

struct connector *
connector_new(const char *conninfo)
{
	struct connector *connector = memory_new(sizeof(*connector));
	sigset_t all;
	sigset_t before;

	connector->conninfo = conninfo;
	connector->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	pthread_mutex_init(&connector->mutex, NULL);
	pthread_cond_init(&connector->asked, NULL);
	STAILQ_INIT(&connector->waiting);
	STAILQ_INIT(&connector->ended);
	/* Signals belong to the loop's signalfd. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (connector->event < 0 || pthread_create(&connector->thread, NULL, run, connector) != 0)
	{
		perror("inbox-puller: could not start the connector thread");
		exit(3);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return connector;
}

int
connector_fd(const struct connector *connector)
{
	return connector->event;
}

void
connector_ask(struct connector *connector, void *owner, const char *password)
{
	struct attempt *attempt = memory_new(sizeof(*attempt));

	attempt->owner = owner;
	attempt->password = memory_copy_text(password);
	pthread_mutex_lock(&connector->mutex);
	STAILQ_INSERT_TAIL(&connector->waiting, attempt, link);
	pthread_cond_signal(&connector->asked);
	pthread_mutex_unlock(&connector->mutex);
}

PGconn *
connector_take(struct connector *connector, void **owner)
{
	struct attempt *attempt;
	PGconn *connection = NULL;
	uint64_t count;

	/* Empties the eventfd; EAGAIN when it was empty already. */
	if (read(connector->event, &count, sizeof(count)) < 0)
	{
	}
	pthread_mutex_lock(&connector->mutex);
	attempt = STAILQ_FIRST(&connector->ended);
	if (attempt != NULL)
	{
		STAILQ_REMOVE_HEAD(&connector->ended, link);
	}
	pthread_mutex_unlock(&connector->mutex);
	if (attempt != NULL)
	{
		connection = attempt->connection;
		*owner = attempt->owner;
		free(attempt);
	}
	return connection;
}

static void
free_attempts(struct attempts *attempts)
{
	struct attempt *attempt;

	while ((attempt = STAILQ_FIRST(attempts)) != NULL)
	{
		STAILQ_REMOVE_HEAD(attempts, link);
		PQfinish(attempt->connection);
		forget_password(attempt);
		free(attempt);
	}
}

void
connector_free(struct connector *connector)
{
	bool busy;

	pthread_mutex_lock(&connector->mutex);
	free_attempts(&connector->waiting);
	connector->stopping = true;
	busy = connector->busy;
	pthread_cond_signal(&connector->asked);
	pthread_mutex_unlock(&connector->mutex);
	if (busy)
	{
		return;
	}
	pthread_join(connector->thread, NULL);
	free_attempts(&connector->ended);
	close(connector->event);
	pthread_cond_destroy(&connector->asked);
	pthread_mutex_destroy(&connector->mutex);
	free(connector);
}
