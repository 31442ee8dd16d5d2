/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "memory.h"

/* The signature, to be freed; NULL when there is none, which is reported. */
static char *
check_handler(struct check *check)
{
	const char *values[] = {check->config->handler};
	char *sql;
	PGresult *row;
	char *signature;

	if (check->config->handler == NULL)
	{
		check_report_note(&check->report, "handler",
						  memory_copy_text(check->config->as_dead_letters
											   ? "none is run: --as-dead-letters"
											   : "not looked at without --handler"));
		return NULL;
	}
	sql = memory_format("SELECT %s.inbox_handler($1)", check->facts.schema);
	row = check_ask(check, true, sql, 1, values);
	free(sql);
	if (row == NULL)
	{
		check_complain(check, "handler");
		return NULL;
	}
	signature = memory_copy_text(PQgetvalue(row, 0, 0));
	PQclear(row);
	check_report_ok(
		&check->report, "handler",
		memory_format("%s, which %s may execute", signature, PQuser(check->connection)));
	return signature;
}

enum
{
	SERVED_HANDLER,
	SERVED_SUBSCRIPTION,
	SERVED_AT,
	SERVED_HALTED,
	SERVED_DEDUP
};

/* The value as text, or NULL. */
static const char *
value(const PGresult *row, int field)
{
	return PQgetisnull(row, 0, field) ? NULL : PQgetvalue(row, 0, field);
}

/* inbox_serve() refuses what differs; what is not known on either side does not. */
static bool
differs(const char *served, const char *now)
{
	return served != NULL && now != NULL && strcmp(served, now) != 0;
}

static void
judge_served(struct check *check, const PGresult *row, const char *signature)
{
	const struct config *config = check->config;
	const char *handler = value(row, SERVED_HANDLER);
	const char *subscription = value(row, SERVED_SUBSCRIPTION);
	bool other = differs(handler, signature) ||
				 (!config->as_dead_letters && differs(subscription, config->subscription));
	char *served;

	if (handler == NULL)
	{
		check_report_ok(&check->report, "source",
						memory_format("%s: not served by a puller so far", config->source));
		return;
	}
	served = memory_format("%s: last served %s with %s from %s", config->source,
						   PQgetvalue(row, 0, SERVED_AT), handler,
						   subscription != NULL ? subscription : "no subscription");
	if (!other)
	{
		check_report_ok(&check->report, "source", served);
	}
	else if (config->take_over)
	{
		check_report_ok(&check->report, "source",
						memory_format("%s; --take-over replaces that", served));
		free(served);
	}
	else
	{
		check_report_problem(&check->report, "source",
							 memory_format("%s: serving it otherwise would be refused", served),
							 memory_copy_text("use another --source, or say with --take-over that "
											  "this one replaces what was there"));
		free(served);
	}
}

static void
judge_halted(struct check *check, const PGresult *row)
{
	const char *since = value(row, SERVED_HALTED);

	if (since != NULL)
	{
		check_report_problem(
			&check->report, "halted",
			memory_format("since %s: one message after the other has failed", since),
			memory_copy_text("put the handler right (the errors are in inbox_failure): the first "
							 "message that is applied ends it"));
	}
}

/* The source that is served from the subscription: a shadow would take its messages away. */
static PGresult *
ask_served_from(struct check *check)
{
	const char *values[] = {check->config->subscription};
	char *sql =
		memory_format("SELECT min(s.source) FROM %s.inbox_status() s WHERE s.subscription = $1",
					  check->facts.schema);
	PGresult *row = check_ask(check, false, sql, 1, values);

	free(sql);
	if (row == NULL)
	{
		check_complain(check, "source");
	}
	return row;
}

/* A shadow serves nothing: it needs the source, and a subscription that nobody serves it from. */
static void
judge_shadow(struct check *check, bool there)
{
	const struct config *config = check->config;
	PGresult *row = ask_served_from(check);

	if (row == NULL)
	{
		return;
	}
	if (value(row, 0) != NULL)
	{
		check_report_problem(
			&check->report, "source",
			memory_format("%s is served from %s: a shadow would take its messages away",
						  value(row, 0), config->subscription),
			memory_copy_text("make a second subscription to its topic and give that"));
	}
	else if (!there)
	{
		check_report_problem(
			&check->report, "source",
			memory_format("%s is not there, and a shadow makes nothing", config->source),
			memory_format("SELECT %s.inbox_configure('%s') makes it, or inbox_import() with the "
						  "keys of another consumer",
						  check->facts.schema, config->source));
	}
	else
	{
		check_report_ok(&check->report, "source",
						memory_format("%s, which a shadow leaves as it is", config->source));
	}
	PQclear(row);
}

/* No row is no error: the first serving makes one. */
static void
judge_source(struct check *check, const PGresult *row, const char *signature)
{
	bool there = PQntuples(row) > 0;
	const char *dedup;

	check->source_known = true;
	if (check->config->shadow)
	{
		judge_shadow(check, there);
	}
	else if (there)
	{
		judge_served(check, row, signature);
	}
	else
	{
		check_report_ok(&check->report, "source",
						memory_format("%s: new, it knows no keys yet", check->config->source));
	}
	if (there)
	{
		dedup = value(row, SERVED_DEDUP);
		check->dedup_ms = dedup != NULL ? strtoll(dedup, NULL, 10) : 0;
		judge_halted(check, row);
	}
}

void
check_source(struct check *check)
{
	char *signature = check_handler(check);
	const char *values[] = {check->config->source};
	char *sql =
		memory_format("SELECT handler, subscription,"
					  " to_char(served_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'),"
					  " to_char(halted_since AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'),"
					  " (extract(epoch FROM dedup_window) * 1000)::bigint FROM %s.inbox_served($1)",
					  check->facts.schema);
	PGresult *row = NULL;

	if (values[0] == NULL)
	{
		check_report_note(&check->report, "source",
						  memory_copy_text("not looked at without --subscription or --source"));
	}
	else if ((row = check_ask(check, false, sql, 1, values)) == NULL)
	{
		check_complain(check, "source");
	}
	else
	{
		judge_source(check, row, signature);
	}
	PQclear(row);
	free(sql);
	free(signature);
}
