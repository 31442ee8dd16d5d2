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

static const Oid text_type[] = {TEXTOID};
static const Oid int4_type[] = {INT4OID};

/* One statement for all that a call has to know, so that a quiet source costs one look-up. */
static inbox_statement find = {
	.text = "SELECT s.id, %1$s.inbox_lock_key(COALESCE(s.lock_group, s.name)),"
			" s.conflict_check, s.order_policy OPERATOR(pg_catalog.=) 'park', s.purged_before,"
			" s.halted_since IS NOT NULL OR EXISTS (SELECT FROM %1$s.inbox_failure f"
			" WHERE f.source_id OPERATOR(pg_catalog.=) s.id AND f.status IN ('retrying', 'dead')"
			" AND f.last_failed_at OPERATOR(pg_catalog.>) s.applied_at),"
			" EXISTS (SELECT FROM %1$s.inbox_failure f"
			" WHERE f.source_id OPERATOR(pg_catalog.=) s.id AND f.status IN ('retrying', 'parked')"
			" OR f.source_id OPERATOR(pg_catalog.=) s.id AND f.status OPERATOR(pg_catalog.=) 'dead'"
			" AND f.ordering_key IS NOT NULL AND s.order_policy OPERATOR(pg_catalog.=) 'park')"
			" FROM %1$s.inbox_source s WHERE s.name OPERATOR(pg_catalog.=) $1",
	.nargs = 1,
	.types = text_type};

static inbox_statement create = {
	.text = "SELECT %1$s.inbox_source_ensure($1)", .nargs = 1, .types = text_type};

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

void
inbox_source_read(const inbox_home *home, text *name, inbox_source *source)
{
	Datum values[] = {PointerGetDatum(name)};
	inbox_caller caller = inbox_home_begin(home);

	source->name = name;
	while (!find_source(home, values, source))
		(void) inbox_home_run(home, &create, values, NULL);
	inbox_home_end(caller);
}

void
inbox_source_lock(const inbox_source *source)
{
	(void) DirectFunctionCall1(pg_advisory_xact_lock_shared_int8, Int64GetDatum(source->lock_key));
}

void
inbox_source_applied(const inbox_home *home, const inbox_source *source)
{
	Datum values[] = {Int32GetDatum(source->id)};
	inbox_caller caller = inbox_home_begin(home);

	(void) inbox_home_run(home, &note_success, values, NULL);
	inbox_home_end(caller);
}
