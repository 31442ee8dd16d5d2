/* SPDX-License-Identifier: PostgreSQL */
#include "session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void
fail(const char *what, const char *why)
{
	fprintf(stderr, "driver: %s: %s\n", what, why);
	exit(1);
}

static PGresult *
ask(struct session *session, const char *sql)
{
	PGresult *result = PQexec(session->connection, sql);

	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
	{
		fail(sql, PQresultErrorMessage(result));
	}
	return result;
}

void
session_open(struct session *session, const char *conninfo, const char *statement)
{
	PGresult *result;

	session->connection = PQconnectdb(conninfo);
	if (PQstatus(session->connection) != CONNECTION_OK)
	{
		fail("could not connect", PQerrorMessage(session->connection));
	}
	result = ask(session, "SELECT 'inbox_message'::regtype::oid");
	session->message_type = (unsigned) strtoul(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	result = PQprepare(session->connection, "run", statement, 0, NULL);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
	{
		fail(statement, PQresultErrorMessage(result));
	}
	PQclear(result);
	if (PQenterPipelineMode(session->connection) != 1)
	{
		fail("pipeline mode", PQerrorMessage(session->connection));
	}
}

static void
send(struct session *session, const struct session_parameters *parameters)
{
	static const int binary[SESSION_PARAMETERS_MAX] = {1, 1, 1, 1};
	PGconn *connection = session->connection;
	const char *values[SESSION_PARAMETERS_MAX];
	int sizes[SESSION_PARAMETERS_MAX];

	for (int i = 0; i < parameters->count; i++)
	{
		values[i] = parameters->value[i].bytes;
		sizes[i] = (int) parameters->value[i].size;
	}
	if (PQsendQueryParams(connection, "BEGIN", 0, NULL, NULL, NULL, NULL, 1) != 1 ||
		PQsendQueryPrepared(connection, "run", parameters->count, values, sizes, binary, 1) != 1 ||
		PQsendQueryParams(connection, "COMMIT", 0, NULL, NULL, NULL, NULL, 1) != 1 ||
		PQpipelineSync(connection) != 1)
	{
		fail("could not send", PQerrorMessage(connection));
	}
}

void
session_run(struct session *session, const struct session_parameters *parameters)
{
	ExecStatusType status = PGRES_EMPTY_QUERY;

	send(session, parameters);
	while (status != PGRES_PIPELINE_SYNC)
	{
		PGresult *result = PQgetResult(session->connection);

		if (result == NULL)
		{
			continue;
		}
		status = PQresultStatus(result);
		if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK &&
			status != PGRES_PIPELINE_SYNC)
		{
			fail("a transaction failed", PQresultErrorMessage(result));
		}
		PQclear(result);
	}
}

uint64_t
session_cpu(const struct session *session)
{
	uint64_t nanoseconds = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", PQbackendPID(session->connection));
	file = fopen(path, "re");
	if (file == NULL || fscanf(file, "%" SCNu64, &nanoseconds) != 1)
	{
		fail(path, "not readable: the server must run on this machine, as this user");
	}
	fclose(file);
	return nanoseconds;
}

void
session_close(struct session *session)
{
	PQfinish(session->connection);
}
