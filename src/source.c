/* SPDX-License-Identifier: PostgreSQL */
/*
 * Sources: found by name, created at their first use.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "source.h"

#define NAME_MAX_BYTES 1024
/* Nobody removes a source while it is being made. */
#define MAX_ROUNDS 10

static const Oid text_type[] = {TEXTOID};
static const Oid int4_type[] = {INT4OID};

/* One statement for all that a call has to know, so that a quiet source costs one look-up. */
static inbox_statement find = {
	.text = "SELECT s.id, s.lock_key, s.conflict_check,"
			" s.order_policy OPERATOR(pg_catalog.=) 'park', s.purged_before,"
			" s.halted_since IS NOT NULL OR EXISTS (SELECT FROM %1$s.inbox_failure f"
			" WHERE f.source_id OPERATOR(pg_catalog.=) s.id"
			" AND f.status OPERATOR(pg_catalog.=) ANY ('{retrying,dead}')"
			" AND f.last_failed_at OPERATOR(pg_catalog.>) s.applied_at),"
			" EXISTS (SELECT FROM %1$s.inbox_failure f"
			" WHERE f.source_id OPERATOR(pg_catalog.=) s.id"
			" AND f.status OPERATOR(pg_catalog.=) ANY ('{retrying,dead,parked}')"
			" AND (f.status OPERATOR(pg_catalog.<>) 'dead'"
			" OR s.order_policy OPERATOR(pg_catalog.=) 'park' AND f.ordering_key IS NOT NULL))"
			" FROM %1$s.inbox_source s WHERE s.name OPERATOR(pg_catalog.=) $1",
	.nargs = 1,
	.types = text_type};

static inbox_statement create = {
	.text = "INSERT INTO %1$s.inbox_source (name) VALUES ($1) ON CONFLICT (name) DO NOTHING",
	.nargs = 1,
	.types = text_type};

/* SKIP LOCKED: concurrent batches must not queue for this row; one of them noting it will do. */
static inbox_statement note_success = {
	.text = "UPDATE %1$s.inbox_source s"
			" SET applied_at = pg_catalog.clock_timestamp(), halted_since = NULL"
			" WHERE s.id OPERATOR(pg_catalog.=) (SELECT l.id FROM %1$s.inbox_source l"
			" WHERE l.id OPERATOR(pg_catalog.=) $1 FOR UPDATE SKIP LOCKED)",
	.nargs = 1,
	.types = int4_type};

static bool
find_source(const inbox_home *home, Datum *name, inbox_source *source)
{
	HeapTuple row;
	TupleDesc desc;
	bool isnull;

	if (inbox_home_run(home, &find, name, NULL) == 0)
		return false;
	row = SPI_tuptable->vals[0];
	desc = SPI_tuptable->tupdesc;
	source->id = DatumGetInt32(SPI_getbinval(row, desc, 1, &isnull));
	source->lock_key = DatumGetInt64(SPI_getbinval(row, desc, 2, &isnull));
	source->compares = DatumGetBool(SPI_getbinval(row, desc, 3, &isnull));
	source->parks = DatumGetBool(SPI_getbinval(row, desc, 4, &isnull));
	source->purged_before = DatumGetTimestampTz(SPI_getbinval(row, desc, 5, &isnull));
	source->forgetful = !isnull;
	source->troubled = DatumGetBool(SPI_getbinval(row, desc, 6, &isnull));
	source->holding = DatumGetBool(SPI_getbinval(row, desc, 7, &isnull));
	return true;
}

static void
check_name(const text *name)
{
	if (name == NULL)
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the source is NULL"),
						errhint("Leave it out for the source \"default\".")));
	if (VARSIZE_ANY_EXHDR(name) < 1 || VARSIZE_ANY_EXHDR(name) > NAME_MAX_BYTES)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the name of a source has 1 to %d bytes, this one %zu",
							   NAME_MAX_BYTES, (size_t) VARSIZE_ANY_EXHDR(name)),
						errhint("Leave it out for the source \"default\".")));
}

static void
refuse_lost_source(const inbox_home *home, const text *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the source \"%s\" was neither inserted into inbox_source nor found there",
					text_to_cstring(name)),
			 errdetail("A trigger or a rule on the table may keep rows out of it."),
			 errhint("SELECT * FROM %s.inbox_check();", home->schema)));
}

void
inbox_source_read(const inbox_home *home, text *name, inbox_source *source)
{
	Datum values[] = {PointerGetDatum(name)};
	inbox_caller caller;

	check_name(name);
	caller = inbox_home_begin(home);
	source->name = name;
	for (int round = 0; !find_source(home, values, source); round++)
	{
		if (round == MAX_ROUNDS)
			refuse_lost_source(home, name);
		(void) inbox_home_run(home, &create, values, NULL);
	}
	inbox_home_end(caller);
}

void
inbox_source_lock(const inbox_home *home, inbox_source *source)
{
	/* While it was waited for, another one may have become the source's lock. */
	for (;;)
	{
		Datum key = Int64GetDatum(source->lock_key);

		if (DatumGetBool(DirectFunctionCall1(pg_try_advisory_xact_lock_shared_int8, key)))
			return;
		(void) DirectFunctionCall1(pg_advisory_xact_lock_shared_int8, key);
		inbox_source_read(home, source->name, source);
	}
}

void
inbox_source_applied(const inbox_home *home, const inbox_source *source)
{
	Datum values[] = {Int32GetDatum(source->id)};
	inbox_caller caller = inbox_home_begin(home);

	(void) inbox_home_run(home, &note_success, values, NULL);
	inbox_home_end(caller);
}

PG_FUNCTION_INFO_V1(inbox_source_ensure);

Datum
inbox_source_ensure(PG_FUNCTION_ARGS)
{
	inbox_source source;

	inbox_source_read(inbox_home_find(fcinfo), PG_ARGISNULL(0) ? NULL : PG_GETARG_TEXT_PP(0),
					  &source);
	PG_RETURN_INT32(source.id);
}
