/* SPDX-License-Identifier: PostgreSQL */
#include "check.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "greeting.h"
#include "log.h"
#include "memory.h"

#define STEP_MS 100
/* For the way, on top of the statement's own limit. */
#define STATEMENT_SPARE_MS 5000
#define STATEMENT_MS 10000

/* ---- what went wrong ------------------------------------------------------------------------ */

/* The puller goes on trying, and says so; a check does not. */
char *
check_remedy(const char *hint)
{
	static const char again[] = "it is tried again by itself";
	const char *at = hint != NULL ? strstr(hint, again) : NULL;
	const char *behind;

	if (at == NULL)
	{
		return memory_copy_text(hint);
	}
	behind = at + strlen(again);
	if (at == hint)
	{
		behind += strspn(behind, "; ");
		return *behind != '\0' ? memory_copy_text(behind) : NULL;
	}
	while (at > hint && strchr("; ,", at[-1]) != NULL)
	{
		at--;
	}
	return memory_format("%.*s%s", (int) (at - hint), hint, behind);
}

static const char *
find_text(const struct log_field *fields, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
	{
		if (fields[i].kind == LOG_TEXT && strcmp(fields[i].name, name) == 0)
		{
			return fields[i].text;
		}
	}
	return NULL;
}

static void
complain(struct check *check, const char *sqlstate, const char *error, const char *detail,
		 const char *hint)
{
	snprintf(check->sqlstate, sizeof(check->sqlstate), "%s", sqlstate != NULL ? sqlstate : "");
	(void) fault_set(
		&check->complaint,
		memory_format("%s%s%s", error, detail != NULL ? ": " : "", detail != NULL ? detail : ""),
		check_remedy(hint));
}

static void
read_log(void *context, enum log_level level, const char *event, const struct log_field *fields,
		 size_t count)
{
	const char *error = find_text(fields, count, "err");

	(void) event;
	if (level >= LOG_WARNING && error != NULL)
	{
		complain(context, find_text(fields, count, "sqlstate"), error,
				 find_text(fields, count, "detail"), find_text(fields, count, "hint"));
	}
}

void
check_complain(struct check *check, const char *name)
{
	const struct fault *complaint = &check->complaint;

	check_report_problem(
		&check->report, name,
		memory_copy_text(complaint->fact != NULL ? complaint->fact : "for an unknown reason"),
		memory_copy_text(complaint->remedy));
	fault_free(&check->complaint);
}

/* ---- the database --------------------------------------------------------------------------- */

static void
lose_connection(struct check *check, const char *error)
{
	complain(check, NULL, error, NULL,
			 "see in pg_stat_activity what the session waits for, and in the server's log");
	PQfinish(check->connection);
	check->connection = NULL;
}

bool
check_await(struct check *check)
{
	struct pollfd file = {.fd = PQsocket(check->connection), .events = POLLIN};

	if (poll(&file, 1, check->statement_ms + STATEMENT_SPARE_MS) != 1)
	{
		lose_connection(check, "the server does not answer");
		return false;
	}
	if (PQconsumeInput(check->connection) != 1)
	{
		lose_connection(check, PQerrorMessage(check->connection));
		return false;
	}
	return true;
}

/* The last result of what was sent, or NULL. */
static PGresult *
take_result(struct check *check)
{
	PGresult *last = NULL;
	PGresult *result;

	for (;;)
	{
		while (PQisBusy(check->connection) == 1)
		{
			if (!check_await(check))
			{
				PQclear(last);
				return NULL;
			}
		}
		result = PQgetResult(check->connection);
		if (result == NULL)
		{
			return last;
		}
		PQclear(last);
		last = result;
	}
}

static bool
run(struct check *check, const char *sql)
{
	PGresult *result;

	if (PQsendQuery(check->connection, sql) != 1)
	{
		lose_connection(check, PQerrorMessage(check->connection));
		return false;
	}
	result = take_result(check);
	PQclear(result);
	return check->connection != NULL;
}

/* False, with a complaint, when it is an error. */
static bool
is_answer(struct check *check, const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *given = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
	char *hint;

	if (PQresultStatus(result) == PGRES_TUPLES_OK)
	{
		return true;
	}
	hint = given != NULL ? memory_copy_text(given) : greeting_hint(check->connection, sqlstate);
	complain(check, sqlstate, message != NULL ? message : PQerrorMessage(check->connection),
			 PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL), hint);
	free(hint);
	return false;
}

/* A function of somebody else's in the search_path must not answer in the catalog's place. */
static bool
begin(struct check *check, bool as_the_role)
{
	char *sql =
		memory_format("BEGIN READ ONLY; SET LOCAL statement_timeout = %d%s", check->statement_ms,
					  as_the_role ? "" : "; SET LOCAL search_path = pg_catalog, pg_temp");
	bool begun = run(check, sql);

	free(sql);
	return begun;
}

PGresult *
check_ask(struct check *check, bool as_the_role, const char *sql, int count,
		  const char *const *values)
{
	PGresult *result = NULL;

	if (check->connection == NULL || !begin(check, as_the_role))
	{
		return NULL;
	}
	if (PQsendQueryParams(check->connection, sql, count, NULL, values, NULL, NULL, 0) == 1)
	{
		result = take_result(check);
	}
	if (check->connection != NULL && !is_answer(check, result))
	{
		PQclear(result);
		result = NULL;
	}
	if (check->connection != NULL)
	{
		(void) run(check, "ROLLBACK");
	}
	return result;
}

/* ---- Pub/Sub -------------------------------------------------------------------------------- */

void
check_step_http(struct check *check)
{
	if (!http_step(check->http))
	{
		http_wait(check->http, NULL, 0, STEP_MS);
	}
}

void
check_await_answer(struct check *check, const struct check_answer *answer)
{
	while (!answer->done)
	{
		check_step_http(check);
	}
}

/* pubsub's callbacks free what they are given. */
struct answer_context
{
	struct check_answer *answer;
};

void *
check_answer_new(struct check_answer *answer)
{
	struct answer_context *context = memory_new(sizeof(*context));

	*answer = (struct check_answer){.outcome = PUBSUB_TRANSIENT};
	context->answer = answer;
	return context;
}

void
check_take_answer(void *context, const struct pubsub_answer *given)
{
	struct check_answer *answer = ((struct answer_context *) context)->answer;

	free(context);
	answer->done = true;
	answer->outcome = given->outcome;
	answer->status = given->status;
	answer->error = memory_copy_text(given->error);
	if (given->outcome == PUBSUB_OK)
	{
		answer->document = json_tokener_parse(given->body);
	}
}

void
check_answer_free(struct check_answer *answer)
{
	free(answer->error);
	json_object_put(answer->document);
}

/* ---- the whole ------------------------------------------------------------------------------ */

char *
check_time(int64_t milliseconds)
{
	static const struct
	{
		int64_t size;
		const char *unit;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
	{
		if (milliseconds >= units[i].size && milliseconds % units[i].size == 0)
		{
			return memory_format("%lld %s", (long long) (milliseconds / units[i].size),
								 units[i].unit);
		}
	}
	return memory_format("%lld ms", (long long) milliseconds);
}

static void
check_pubsub(struct check *check, struct auth *auth)
{
	check_report_group(&check->report, "Pub/Sub");
	if (check->config->subscription == NULL)
	{
		check_report_note(&check->report, "subscription",
						  memory_copy_text("not looked at without --subscription"));
	}
	else if (check_credentials(check, auth))
	{
		check_subscription(check, auth);
	}
}

void
check_begin(struct check *check, struct auth *auth, const struct config *config, FILE *out)
{
	*check = (struct check){.config = config, .statement_ms = STATEMENT_MS};
	/* A server that hangs up in the middle of a request is a fact to report. */
	signal(SIGPIPE, SIG_IGN);
	log_configure(LOG_LOGFMT, LOG_WARNING);
	log_divert(read_log, check);
	check_report_begin(&check->report, out, config->check_json);
	check->http = http_new();
	http_trust(check->http, config->ca_file);
	auth_init(auth, check->http, config);
}

int
check_end(struct check *check, struct auth *auth)
{
	http_free(check->http);
	auth_free(auth);
	PQfinish(check->connection);
	greeting_free_facts(&check->facts);
	fault_free(&check->complaint);
	log_divert(NULL, NULL);
	return check_report_end(&check->report);
}

int
check_run(const struct config *config, FILE *out)
{
	struct check check;
	struct auth auth;

	check_begin(&check, &auth, config, out);
	check_report_group(&check.report, "Database");
	check_database(&check);
	check_pubsub(&check, &auth);
	return check_end(&check, &auth);
}
