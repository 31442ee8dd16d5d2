/* SPDX-License-Identifier: PostgreSQL */
/*
 * Our own tables: found by the schema of the function that was called, used as their owner.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "home.h"

static inbox_home here;

static Oid
table_named(Oid namespace, const char *name)
{
	Oid table = get_relname_relid(name, namespace);

	if (!OidIsValid(table))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("the table %s is missing", name),
						errhint("Drop the extension inbox and create it again.")));
	return table;
}

static Oid
owner_of(Oid table)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	Oid owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", table);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

const inbox_home *
inbox_home_find(FunctionCallInfo fcinfo)
{
	inbox_home now;

	/* Compared byte by byte below, so that the padding has to be the same too. */
	memset(&now, 0, sizeof(now));
	now.namespace = get_func_namespace(fcinfo->flinfo->fn_oid);
	strlcpy(now.schema, quote_identifier(get_namespace_name(now.namespace)), sizeof(now.schema));
	now.claim = table_named(now.namespace, "inbox_claim");
	now.source = table_named(now.namespace, "inbox_source");
	now.failure = table_named(now.namespace, "inbox_failure");
	now.result = table_named(now.namespace, "inbox_claim_result");
	now.message = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("inbox_message"),
								  ObjectIdGetDatum(now.namespace));

	now.epoch = here.epoch;
	now.owner = here.owner;
	if (memcmp(&now, &here, sizeof(now)) != 0)
	{
		now.epoch++;
		here = now;
	}
	here.owner = owner_of(here.claim);
	return &here;
}

/* ---- statements ------------------------------------------------------------------------- */

inbox_caller
inbox_home_begin(const inbox_home *home)
{
	inbox_caller caller;

	GetUserIdAndSecContext(&caller.role, &caller.context);
	SetUserIdAndSecContext(home->owner, caller.context | SECURITY_LOCAL_USERID_CHANGE |
											SECURITY_RESTRICTED_OPERATION | SECURITY_NOFORCE_RLS);
	SPI_connect();
	return caller;
}

void
inbox_home_end(inbox_caller caller)
{
	SPI_finish();
#ifndef INBOX_WITHOUT_CALLER_RESTORED
	SetUserIdAndSecContext(caller.role, caller.context);
#endif
}

static void
prepare(const inbox_home *home, inbox_statement *statement)
{
	char *text = psprintf(statement->text, home->schema);
	Oid types[FUNC_MAX_ARGS];
	SPIPlanPtr plan;

	for (int i = 0; i < statement->nargs; i++)
		types[i] = OidIsValid(statement->types[i]) ? statement->types[i] : home->message;

	if (statement->plan != NULL)
	{
		SPI_freeplan(statement->plan);
		statement->plan = NULL;
	}
	plan = SPI_prepare(text, statement->nargs, types);
	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "could not prepare \"%s\": %s", text, SPI_result_code_string(SPI_result));
	statement->plan = plan;
	statement->epoch = home->epoch;
}

uint64
inbox_home_run(const inbox_home *home, inbox_statement *statement, Datum *values, const char *nulls)
{
	int result;

	if (statement->plan == NULL || statement->epoch != home->epoch)
		prepare(home, statement);
	result = SPI_execute_plan(statement->plan, values, nulls, false, 0);
	if (result < 0)
		elog(ERROR, "could not run \"%s\": %s", statement->text, SPI_result_code_string(result));
	return SPI_processed;
}
