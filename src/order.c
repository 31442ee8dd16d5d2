/* SPDX-License-Identifier: PostgreSQL */
/*
 * Order: asked only where the source has messages that others may have to wait for.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/timestamp.h"

#include "order.h"

static const Oid held_types[] = {INT4OID, TEXTARRAYOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, BOOLOID};

/*
 * What holds up the n-th of the messages given: one of the same ordering key that was not
 * published after it. Where a time is missing, it is taken to hold.
 */
static inbox_statement held = {
	.text = "SELECT o.n::pg_catalog.int4, f.key, f.status OPERATOR(pg_catalog.=) 'retrying'"
			" FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4))"
			" WITH ORDINALITY AS o(ordering_key, key, publish_time, n)"
			" JOIN %1$s.inbox_failure f ON f.source_id OPERATOR(pg_catalog.=) $1"
			" AND f.ordering_key OPERATOR(pg_catalog.=) o.ordering_key"
			" AND f.status OPERATOR(pg_catalog.=) ANY ('{retrying,dead,parked}')"
			" AND (f.status OPERATOR(pg_catalog.<>) 'dead' OR $5)"
			" AND f.key OPERATOR(pg_catalog.<>) o.key"
			" WHERE (f.publish_time OPERATOR(pg_catalog.<=) o.publish_time) IS NOT FALSE",
	.nargs = 5,
	.types = held_types};

/* The open messages that have an ordering key, as arrays; returns their number. */
static int
set_values(Datum *values, const inbox_source *source, const inbox_claims *claims,
		   inbox_message **ordered)
{
	Datum *ordering_keys = palloc(sizeof(Datum) * claims->opened);
	Datum *keys = palloc(sizeof(Datum) * claims->opened);
	Datum *times = palloc(sizeof(Datum) * claims->opened);
	bool *no_time = palloc(sizeof(bool) * claims->opened);
	int n = 0;
	int lower = 1;

	for (int i = 0; i < claims->opened; i++)
	{
		inbox_message *message = claims->open[i];

		if (message->ordering_key == NULL)
			continue;
		ordering_keys[n] = PointerGetDatum(message->ordering_key);
		keys[n] = PointerGetDatum(message->key);
		times[n] = TimestampTzGetDatum(message->publish_time);
		no_time[n] = !message->published;
		ordered[n++] = message;
	}
	values[0] = Int32GetDatum(source->id);
	values[1] =
		PointerGetDatum(construct_array(ordering_keys, n, TEXTOID, -1, false, TYPALIGN_INT));
	values[2] = PointerGetDatum(construct_array(keys, n, TEXTOID, -1, false, TYPALIGN_INT));
	values[3] = PointerGetDatum(construct_md_array(times, no_time, 1, &n, &lower, TIMESTAMPTZOID, 8,
												   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	values[4] = BoolGetDatum(source->parks);
	return n;
}

/*
 * What comes before a message in its own call does not hold it up: it is applied first, or none.
 * Unless it is only a copy of what is dead.
 */
static void
hold_back(const inbox_claims *claims, inbox_message *message, bool claimed, HeapTuple row,
		  TupleDesc desc)
{
	bool isnull;
	const text *holder = DatumGetTextPP(SPI_getbinval(row, desc, 2, &isnull));
	const inbox_message *first = inbox_claims_first(claims, holder);

	if (first != NULL && first->verdict == INBOX_NEW && first->ordinal < message->ordinal)
		return;
	if (!DatumGetBool(SPI_getbinval(row, desc, 3, &isnull)))
		message->parks = true;
	else if (!claimed)
		message->verdict = INBOX_LATER;
}

/*
 * Marks the open messages that are held up. When their keys are claimed already it is too late for
 * INBOX_LATER, which leaves none.
 */
static void
look(const inbox_home *home, const inbox_source *source, const inbox_claims *claims, bool claimed)
{
	Datum values[lengthof(held_types)];
	inbox_message **ordered = palloc(sizeof(inbox_message *) * (claims->opened + 1));
	inbox_caller caller;
	uint64 rows;

#ifndef INBOX_WITHOUT_ORDER
	if (!source->holding || set_values(values, source, claims, ordered) == 0)
		return;
#else
	return;
#endif
	caller = inbox_home_begin(home);
	rows = inbox_home_run(home, &held, values, NULL);
	for (uint64 i = 0; i < rows; i++)
	{
		HeapTuple row = SPI_tuptable->vals[i];
		TupleDesc desc = SPI_tuptable->tupdesc;
		bool isnull;
		int n = DatumGetInt32(SPI_getbinval(row, desc, 1, &isnull));

		hold_back(claims, ordered[n - 1], claimed, row, desc);
	}
	inbox_home_end(caller);
}

void
inbox_order_hold(const inbox_home *home, const inbox_source *source, inbox_claims *claims)
{
	look(home, source, claims, false);
	inbox_claims_drop_decided(claims);
}

void
inbox_order_park(const inbox_home *home, inbox_source *source, inbox_claims *claims)
{
	int before = claims->opened;

	if (!source->parks)
		return;
	inbox_claims_reopen(claims);
	if (claims->opened == before)
		return;
	inbox_source_read(home, source->name, source);
	look(home, source, claims, true);
}
