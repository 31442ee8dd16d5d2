/* SPDX-License-Identifier: PostgreSQL */
/*
 * pipeline CONNINFO SQL [prepared]: runs the SQL in a transaction, in one round trip, the way a
 * careful client does: BEGIN, SQL, Sync, COMMIT, Sync. Prints what is known of the outcome:
 * committed, rolled back, or unknown. With "prepared" the COMMIT is a prepared statement.
 */
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *
outcome(PGconn *connection)
{
	const char *found = "unknown";
	int syncs = 0;

	while (syncs < 2)
	{
		PGresult *result = PQgetResult(connection);
		ExecStatusType status = PQresultStatus(result);

		if (result == NULL && PQstatus(connection) == CONNECTION_BAD)
			break;
		if (status == PGRES_PIPELINE_SYNC)
			syncs++;
		else if (status == PGRES_COMMAND_OK && strcmp(PQcmdStatus(result), "COMMIT") == 0)
			found = "committed";
		else if (status == PGRES_COMMAND_OK && strcmp(PQcmdStatus(result), "ROLLBACK") == 0)
			found = "rolled back";
		PQclear(result);
	}
	return found;
}

static bool
send_all(PGconn *connection, const char *sql, bool prepared)
{
	return PQsendQueryParams(connection, "BEGIN", 0, NULL, NULL, NULL, NULL, 0) &&
		   PQsendQueryParams(connection, sql, 0, NULL, NULL, NULL, NULL, 0) &&
		   PQpipelineSync(connection) &&
		   (prepared ? PQsendQueryPrepared(connection, "done", 0, NULL, NULL, NULL, 0)
					 : PQsendQueryParams(connection, "COMMIT", 0, NULL, NULL, NULL, NULL, 0)) &&
		   PQpipelineSync(connection);
}

int
main(int argc, char **argv)
{
	bool prepared = argc > 3;
	PGconn *connection;

	if (argc < 3)
		return 1;
	connection = PQconnectdb(argv[1]);
	if (PQstatus(connection) != CONNECTION_OK)
	{
		fprintf(stderr, "%s", PQerrorMessage(connection));
		return 1;
	}
	if (prepared)
		PQclear(PQprepare(connection, "done", "commit;", 0, NULL));
	PQenterPipelineMode(connection);
	if (send_all(connection, argv[2], prepared))
		puts(outcome(connection));
	PQfinish(connection);
	return 0;
}
