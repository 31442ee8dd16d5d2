/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "greeting.h"
#include "iam.h"
#include "lease.h"
#include "memory.h"

/* ---- the connection ------------------------------------------------------------------------- */

/* What to do about the commonest refusals of libpq and of servers, by a part of their text. */
static const char *
connection_remedy(const char *error)
{
	static const struct
	{
		const char *part;
		const char *remedy;
	} remedies[] = {
		{"could not translate host name", "check the host in --dbname or PGHOST"},
		{"Connection refused", "check host and port, and whether the server runs"},
		{"No such file or directory", "check host and port, and whether the server runs"},
		{"timeout expired", "check host and port, and the firewalls on the way"},
		{"no password supplied", "put the password into the password file (PGPASSFILE)"},
		{"password authentication failed", "check the user and the password (PGPASSFILE)"},
		{"no pg_hba.conf entry", "let the role in by a line of the server's pg_hba.conf"},
		{"database \"", "check dbname in --dbname or PGDATABASE: psql -l lists what there is"},
		{"role \"", "check user in --dbname or PGUSER, or CREATE ROLE … LOGIN"},
	};

	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
	{
		if (strstr(error, remedies[i].part) != NULL)
		{
			return remedies[i].remedy;
		}
	}
	return "check --dbname and the PG* environment: psql with the same says the same";
}

/* A token for IAM database authentication, as it comes. */
struct password
{
	bool done;
	char *token; /* NULL: none could be had */
};

static void
take_password(void *context, const char *token)
{
	struct password *password = context;

	password->done = true;
	password->token = memory_copy_text(token);
}

/* False, with a complaint, when the database wants a token and there is none. */
static bool
open_connection(struct check *check)
{
	struct password password = {.done = check->config->db_auth == DB_AUTH_LIBPQ};

	if (!password.done)
	{
		iam_ask(check->http, check->config, take_password, &password);
		while (!password.done)
		{
			check_step_http(check);
		}
		if (password.token == NULL)
		{
			return false;
		}
	}
	check->connection = connector_open(check->config->dbname, password.token);
	if (password.token != NULL)
	{
		explicit_bzero(password.token, strlen(password.token));
		free(password.token);
	}
	return true;
}

static void
report_connection(struct check *check)
{
	const PGconn *connection = check->connection;
	const char *version = PQparameterStatus(connection, "server_version");
	bool local = PQhost(connection)[0] == '/';

	/* Distributions add a version of their own in brackets. */
	check_report_ok(&check->report, "database",
					memory_format("%s on %s:%s as %s, PostgreSQL %.*s%s", PQdb(connection),
								  PQhost(connection), PQport(connection), PQuser(connection),
								  (int) strcspn(version, " "), version,
								  PQsslInUse(check->connection) ? ", TLS"
								  : local						? ""
																: ", no TLS"));
}

bool
check_connection(struct check *check)
{
	PGconn *connection;

	if (!open_connection(check))
	{
		check_complain(check, "database");
		return false;
	}
	connection = check->connection;
	if (PQstatus(connection) != CONNECTION_OK)
	{
		const char *error = PQerrorMessage(connection);

		check_report_problem(&check->report, "database", memory_copy_text(error),
							 memory_copy_text(connection_remedy(error)));
		PQfinish(connection);
		check->connection = NULL;
		return false;
	}
	report_connection(check);
	return true;
}

static void
check_encoding(struct check *check)
{
	const char *encoding = PQparameterStatus(check->connection, "server_encoding");

	if (encoding != NULL && strcmp(encoding, "UTF8") == 0)
	{
		check_report_ok(&check->report, "encoding", memory_copy_text(encoding));
		return;
	}
	check_report_problem(&check->report, "encoding", memory_copy_text(encoding),
						 memory_copy_text("a database takes its encoding when it is made: CREATE "
										  "DATABASE … ENCODING 'UTF8' TEMPLATE template0"));
}

/* ---- which inbox ---------------------------------------------------------------------------- */

/* The greeting of the puller, but for serving. */
static bool
greet(struct check *check)
{
	struct db db = {.number = 1, .config = check->config, .connection = check->connection};
	enum db_refusal refusal;
	enum greeting_outcome outcome = greeting_start(&db) ? GREETING_GOES_ON : GREETING_FAILED;

	while (outcome == GREETING_GOES_ON)
	{
		outcome = check_await(check) ? greeting_read(&db, &refusal) : GREETING_FAILED;
	}
	check->facts = db.facts;
	return outcome == GREETING_DONE && PQexitPipelineMode(check->connection) == 1;
}

bool
check_inbox(struct check *check)
{
	const struct db_facts *facts = &check->facts;
	bool greeted = greet(check);

	if (greeted)
	{
		check_report_ok(&check->report, "inbox",
						memory_format("%s in schema %s: %s %s, %s %s; inbox-puller %s",
									  facts->managed ? "managed" : "extension", facts->schema,
									  facts->managed ? "tables" : "objects", facts->version,
									  facts->managed ? "functions" : "library", facts->library,
									  INBOX_VERSION));
		return true;
	}
	if (facts->schema != NULL && strcmp(check->sqlstate, "42501") == 0)
	{
		check_report_note(&check->report, "inbox",
						  memory_format("%s in schema %s; its version may not be asked for",
										facts->managed ? "managed" : "extension", facts->schema));
		return false;
	}
	check_complain(check, "inbox");
	return false;
}

static void
check_promise(struct check *check)
{
	char *sql = memory_format("SELECT name, detail, ok FROM %s.inbox_check()", check->facts.schema);
	PGresult *rows = check_ask(check, false, sql, 0, NULL);
	int problems = check->report.problems;

	free(sql);
	if (rows == NULL)
	{
		check_complain(check, "inbox_check");
		return;
	}
	for (int i = 0; i < PQntuples(rows); i++)
	{
		if (PQgetvalue(rows, i, 2)[0] != 't')
		{
			check_report_problem(
				&check->report, "inbox_check",
				memory_format("%s: %s", PQgetvalue(rows, i, 0), PQgetvalue(rows, i, 1)),
				memory_format("put that right; SELECT * FROM %s.inbox_check() looks again",
							  check->facts.schema));
		}
	}
	if (check->report.problems == problems)
	{
		check_report_ok(&check->report, "inbox_check",
						memory_format("all of its %d rows are ok", PQntuples(rows)));
	}
	PQclear(rows);
}

/* ---- the server's settings ------------------------------------------------------------------ */

/* As the role and the database have them: what a transaction of ours is begun with. */
static const char find_settings[] =
	"SELECT (SELECT s.reset_val FROM pg_settings s WHERE s.name = 'statement_timeout'),"
	" (SELECT s.reset_val FROM pg_settings s WHERE s.name = 'idle_session_timeout'),"
	" (SELECT string_agg(format('%s %s ms', s.name, s.reset_val), ', ' ORDER BY s.name)"
	"  FROM pg_settings s WHERE s.name IN ('statement_timeout', 'lock_timeout',"
	"  'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')"
	"  AND s.reset_val <> '0'),"
	" current_setting('synchronous_commit'), current_setting('inbox.min_synchronous_commit', true),"
	" current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication)";

enum
{
	SETTING_STATEMENT,
	SETTING_IDLE_SESSION,
	SETTING_TIMEOUTS,
	SETTING_SYNCHRONOUS,
	SETTING_MINIMUM,
	SETTING_STANDBYS,
	SETTING_CONNECTED
};

/* The greeting, which the puller does not set a limit for, has to fit in. */
#define STATEMENT_LEAST_MS 1000

static void
check_timeouts(struct check *check, const PGresult *row)
{
	const char *user = PQuser(check->connection);
	long statement = strtol(PQgetvalue(row, 0, SETTING_STATEMENT), NULL, 10);
	long idle = strtol(PQgetvalue(row, 0, SETTING_IDLE_SESSION), NULL, 10);
	char *handler = check_time(check->config->handler_timeout);
	char *extension = check_time(LEASE_EXTENSION_MS);

	if (statement > 0 && statement < STATEMENT_LEAST_MS)
	{
		check_report_problem(
			&check->report, "timeouts",
			memory_format("statement_timeout is %ld ms, too short to begin a connection with",
						  statement),
			memory_format("ALTER ROLE %s SET statement_timeout = 0; the puller sets its own",
						  user));
	}
	else if (idle > 0 && idle < LEASE_EXTENSION_MS)
	{
		check_report_problem(
			&check->report, "timeouts",
			memory_format("idle_session_timeout ends a connection that waits for messages for "
						  "%ld ms",
						  idle),
			memory_format("ALTER ROLE %s SET idle_session_timeout = 0", user));
	}
	else
	{
		check_report_ok(&check->report, "timeouts",
						memory_format("a statement ends after %s (--handler-timeout), a lease is "
									  "extended by %s at a time; the role has %s",
									  handler, extension,
									  PQgetisnull(row, 0, SETTING_TIMEOUTS)
										  ? "no limits of its own"
										  : PQgetvalue(row, 0, SETTING_TIMEOUTS)));
	}
	free(handler);
	free(extension);
}

static bool
is_durable(const char *level)
{
	return strcmp(level, "on") == 0 || strcmp(level, "remote_apply") == 0;
}

/* The library knows its setting only once it is loaded; "on" is the default. */
static void
check_synchronous_commit(struct check *check, const PGresult *row)
{
	const char *level = PQgetvalue(row, 0, SETTING_SYNCHRONOUS);
	const char *least =
		PQgetisnull(row, 0, SETTING_MINIMUM) ? "on" : PQgetvalue(row, 0, SETTING_MINIMUM);

	if (!is_durable(least))
	{
		check_report_problem(&check->report, "synchronous_commit",
							 memory_format("%s, and inbox.min_synchronous_commit is %s: a crash or "
										   "a failover may take back what was acknowledged",
										   level, least),
							 memory_copy_text("ALTER SYSTEM RESET inbox.min_synchronous_commit, "
											  "and look for it in ALTER ROLE and ALTER DATABASE"));
		return;
	}
	check_report_ok(
		&check->report, "synchronous_commit",
		is_durable(level)
			? memory_copy_text(level)
			: memory_format("%s, which inbox raises to %s in its transactions", level, least));
}

static void
check_standbys(struct check *check, const PGresult *row)
{
	const char *names = PQgetvalue(row, 0, SETTING_STANDBYS);

	if (*names == '\0')
	{
		check_report_note(&check->report, "standbys",
						  memory_copy_text("none is synchronous: a failover may lose what was "
										   "acknowledged (synchronous_standby_names)"));
	}
	else if (strcmp(PQgetvalue(row, 0, SETTING_CONNECTED), "0") == 0)
	{
		check_report_problem(
			&check->report, "standbys",
			memory_format("COMMIT waits for %s, and no standby is connected", names),
			memory_copy_text("start the standby, or take it out of synchronous_standby_names: "
							 "until then no transaction ends"));
	}
	else
	{
		check_report_ok(&check->report, "standbys", memory_format("COMMIT waits for %s", names));
	}
}

static void
check_settings(struct check *check)
{
	PGresult *row = check_ask(check, false, find_settings, 0, NULL);

	if (row == NULL)
	{
		check_complain(check, "timeouts");
		return;
	}
	check_timeouts(check, row);
	check_synchronous_commit(check, row);
	check_standbys(check, row);
	PQclear(row);
}

void
check_database(struct check *check)
{
	bool usable;

	if (!check_connection(check))
	{
		check_report_note(&check->report, "the rest",
						  memory_copy_text("not looked at without a connection"));
		return;
	}
	check_encoding(check);
	usable = check_inbox(check);
	if (check->facts.schema != NULL)
	{
		check_rights(check);
	}
	if (usable)
	{
		check_promise(check);
		check_source(check);
	}
	else
	{
		check_report_note(&check->report, "handler",
						  memory_copy_text("not looked at: inbox cannot be called"));
		check_report_note(&check->report, "source",
						  memory_copy_text("not looked at: inbox cannot be called"));
	}
	check_settings(check);
}
