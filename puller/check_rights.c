/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "memory.h"

/* Of the role: superuser; may it become the owner; which tables may it write to, and read. */
static const char find_more[] =
	"SELECT r.rolsuper,"
	" (SELECT min(o.rolname) FROM own JOIN pg_roles o ON o.oid = own.relowner"
	"  WHERE pg_has_role(r.oid, own.relowner, 'MEMBER')),"
	" (SELECT string_agg(own.relname, ', ' ORDER BY own.relname) FROM own"
	"  WHERE (has_table_privilege(r.oid, own.oid, 'DELETE, TRUNCATE, TRIGGER')"
	"  OR has_any_column_privilege(r.oid, own.oid, 'INSERT, UPDATE'))),"
	" (SELECT string_agg(own.relname, ', ' ORDER BY own.relname) FROM own"
	"  WHERE has_any_column_privilege(r.oid, own.oid, 'SELECT'))"
	" FROM pg_roles r WHERE r.rolname = current_user";

enum
{
	MORE_SUPERUSER,
	MORE_OWNER,
	MORE_WRITES,
	MORE_READS
};

static char *
grant_remedy(const struct check *check)
{
	return memory_format("as the owner of inbox: SELECT %s.inbox_grant('%s', 'puller')",
						 check->facts.schema, PQuser(check->connection));
}

/* A role may have each right but the one to ask which it has. True when it has them all. */
static bool
check_needed(struct check *check)
{
	const char *values[] = {PQuser(check->connection)};
	char *sql = memory_format("SELECT object FROM %s.inbox_missing_rights("
							  " (SELECT oid FROM pg_roles WHERE rolname = $1), 'puller') AS object",
							  check->facts.schema);
	PGresult *rows = check_ask(check, false, sql, 1, values);
	int lacking = rows != NULL ? PQntuples(rows) : 0;

	free(sql);
	if (rows == NULL && check->connection != NULL && strcmp(check->sqlstate, "42501") == 0)
	{
		check_report_problem(&check->report, "rights", memory_copy_text(check->complaint.fact),
							 grant_remedy(check));
	}
	else if (rows == NULL)
	{
		check_complain(check, "rights");
	}
	else if (lacking > 0)
	{
		check_report_problem(&check->report, "rights",
							 lacking == 1 ? memory_format("it lacks %s", PQgetvalue(rows, 0, 0))
										  : memory_format("it lacks %s and %d more",
														  PQgetvalue(rows, 0, 0), lacking - 1),
							 grant_remedy(check));
	}
	else
	{
		check_report_ok(&check->report, "rights", memory_copy_text("all that a puller needs"));
	}
	PQclear(rows);
	return rows != NULL && lacking == 0;
}

/* What of an operator's it may call, or NULL; some of that makes keys forgotten. */
static char *
find_functions(struct check *check)
{
	const char *values[] = {check->facts.schema};
	char *sql = memory_format(
		"SELECT string_agg(f.proname, ', ' ORDER BY f.proname) FROM pg_proc f"
		" JOIN pg_namespace n ON n.oid = f.pronamespace AND quote_ident(n.nspname) = $1"
		" WHERE has_function_privilege(f.oid, 'EXECUTE')"
		" AND format('EXECUTE ON %%s %%s', CASE f.prokind WHEN 'p' THEN 'PROCEDURE'"
		"  ELSE 'FUNCTION' END, f.oid::regprocedure)"
		"  IN (SELECT r FROM %1$s.inbox_rights('operator') r"
		"   EXCEPT SELECT r FROM %1$s.inbox_rights('puller') r)",
		check->facts.schema);
	PGresult *row = check_ask(check, false, sql, 1, values);
	char *functions =
		row != NULL && !PQgetisnull(row, 0, 0) ? memory_copy_text(PQgetvalue(row, 0, 0)) : NULL;

	free(sql);
	PQclear(row);
	return functions;
}

/* Who can write to the tables can make messages disappear. */
static void
judge_more(struct check *check, const PGresult *row, const char *functions)
{
	const char *user = PQuser(check->connection);
	struct check_report *report = &check->report;

	if (PQgetvalue(row, 0, MORE_SUPERUSER)[0] == 't')
	{
		check_report_problem(
			report, "role", memory_format("%s is a superuser: no right holds it back", user),
			memory_format("CREATE ROLE puller LOGIN; SELECT %s.inbox_grant('puller', 'puller'); "
						  "and connect as puller",
						  check->facts.schema));
	}
	else if (!PQgetisnull(row, 0, MORE_OWNER))
	{
		check_report_problem(
			report, "role",
			memory_format("%s is %s, who owns inbox, or a member of it: it can drop the keys", user,
						  PQgetvalue(row, 0, MORE_OWNER)),
			memory_format("CREATE ROLE puller LOGIN; SELECT %s.inbox_grant('puller', 'puller'); "
						  "and connect as puller",
						  check->facts.schema));
	}
	else if (!PQgetisnull(row, 0, MORE_WRITES))
	{
		check_report_problem(
			report, "role",
			memory_format("%s may write to %s: it can make messages disappear", user,
						  PQgetvalue(row, 0, MORE_WRITES)),
			memory_format("REVOKE INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER ON ALL TABLES IN "
						  "SCHEMA %s FROM %s, and from the roles it is a member of",
						  check->facts.schema, user));
	}
	else if (!PQgetisnull(row, 0, MORE_READS))
	{
		check_report_note(report, "role",
						  memory_format("%s may read %s, which a puller does not need", user,
										PQgetvalue(row, 0, MORE_READS)));
	}
	else if (functions != NULL)
	{
		check_report_note(
			report, "role",
			memory_format("%s may call %s, which a puller does not need", user, functions));
	}
	else
	{
		check_report_ok(
			report, "role",
			memory_format("%s owns nothing of inbox and may touch no table of it", user));
	}
}

static void
check_more(struct check *check, bool granted)
{
	char *sql = memory_format("WITH own AS (SELECT c.* FROM pg_class c JOIN pg_namespace n"
							  "  ON n.oid = c.relnamespace AND quote_ident(n.nspname) = $1"
							  "  WHERE c.relname IN ('inbox_source', 'inbox_claim',"
							  "   'inbox_claim_result', 'inbox_failure')) %s",
							  find_more);
	const char *values[] = {check->facts.schema};
	PGresult *row = check_ask(check, false, sql, 1, values);
	char *functions;

	free(sql);
	if (row == NULL)
	{
		check_complain(check, "role");
		return;
	}
	functions = granted ? find_functions(check) : NULL;
	judge_more(check, row, functions);
	free(functions);
	PQclear(row);
}

void
check_rights(struct check *check)
{
	check_more(check, check_needed(check));
}
