/* SPDX-License-Identifier: PostgreSQL */
#include <stdio.h>
#include <string.h>

#include "database.h"
#include "list.h"

#define RETRY (200 * MILLISECOND)

static void
report(struct database *database, const char *problem)
{
	if (strncmp(database->problem, problem, sizeof(database->problem) - 1) == 0)
		return;
	snprintf(database->problem, sizeof(database->problem), "%s", problem);
	fprintf(stderr, "lookup on the %s: %s", database->name, problem);
	if (*problem == '\0' || problem[strlen(problem) - 1] != '\n')
		fputc('\n', stderr);
}

static void
start(struct database *database)
{
	database->connection = PQconnectStart(database->conninfo);
	database->polling = PGRES_POLLING_WRITING;
	if (PQstatus(database->connection) == CONNECTION_BAD)
		database->polling = PGRES_POLLING_FAILED;
}

static void
pause_over(struct timer *timer)
{
	struct database *database = OWNER(timer, struct database, pause);

	if (database->connection == NULL)
		start(database);
	database_run(database);
}

void
database_pause(struct database *database, int64_t nanoseconds)
{
	database->pause.fire = pause_over;
	timer_set(database->timers, &database->pause, timer_now() + nanoseconds);
}

/* Gives the connection up and tries again in a while. */
static void
give_up(struct database *database)
{
	bool was_busy = database->busy;

	report(database, PQerrorMessage(database->connection));
	PQfinish(database->connection);
	database->connection = NULL;
	database->busy = false;
	if (was_busy)
		database->lost(database);
	database_pause(database, RETRY);
}

void
database_open(struct database *database)
{
	start(database);
	database_run(database);
}

void
database_close(struct database *database)
{
	timer_cancel(database->timers, &database->pause);
	PQfinish(database->connection);
	database->connection = NULL;
}

bool
database_query(struct database *database, const char *sql, int count, const Oid *types,
			   const char *const *values)
{
	if (PQsendQueryParams(database->connection, sql, count, types, values, NULL, NULL, 0) != 1)
		return false;
	database->busy = true;
	return true;
}

bool
database_poll(const struct database *database, struct pollfd *descriptor)
{
	bool writing;

	if (database->connection == NULL || database->polling == PGRES_POLLING_FAILED)
		return false;
	writing = database->polling == PGRES_POLLING_WRITING ||
			  (database->busy && PQflush(database->connection) == 1);
	descriptor->fd = PQsocket(database->connection);
	descriptor->events = POLLIN | (writing ? POLLOUT : 0);
	if (database->polling == PGRES_POLLING_WRITING)
		descriptor->events = POLLOUT;
	descriptor->revents = 0;
	return true;
}

static bool
is_ready(const struct pollfd *descriptor)
{
	struct pollfd copy = *descriptor;

	return poll(&copy, 1, 0) > 0;
}

/* One step of connecting, if the socket is ready for it. */
static void
go_on_connecting(struct database *database)
{
	struct pollfd descriptor;

	if (database_poll(database, &descriptor) && is_ready(&descriptor))
		database->polling = PQconnectPoll(database->connection);
	if (database->polling == PGRES_POLLING_FAILED)
		give_up(database);
	else if (database->polling == PGRES_POLLING_OK)
		PQsetnonblocking(database->connection, 1);
}

static void
take_results(struct database *database)
{
	PGresult *result;

	if (PQconsumeInput(database->connection) != 1)
	{
		give_up(database);
		return;
	}
	while (database->busy && !PQisBusy(database->connection))
	{
		bool failed;

		result = PQgetResult(database->connection);
		if (result == NULL)
		{
			database->busy = false;
			database->result(database, NULL);
			break;
		}
		failed = PQresultStatus(result) == PGRES_FATAL_ERROR;
		if (!failed)
			database->result(database, result);
		PQclear(result);
		if (failed)
		{
			give_up(database);
			return;
		}
	}
}

void
database_run(struct database *database)
{
	if (database->connection == NULL)
		return;
	if (database->polling != PGRES_POLLING_OK)
		go_on_connecting(database);
	if (database->connection == NULL || database->polling != PGRES_POLLING_OK)
		return;
	take_results(database);
	if (database->connection != NULL && !database->busy && database->pause.slot == 0)
		database->ready(database);
}
