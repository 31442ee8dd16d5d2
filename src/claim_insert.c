/* SPDX-License-Identifier: PostgreSQL */
/*
 * Claims by INSERT … ON CONFLICT: above READ COMMITTED, where it raises the serialization failure
 * that the caller has to get, and where the table has got triggers, rules or further indexes, which
 * only the executor does justice to.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "claim.h"

/* A claim found gone was purged; a purge that is faster so many times is no purge. */
#define MAX_ROUNDS 10

static const Oid insert_types[] = {INT4OID, TEXTARRAYOID, INT8ARRAYOID, TIMESTAMPTZARRAYOID,
								   TIMESTAMPTZOID};

/* The conflict is named: any other one (a second index, say) must be an error, not a duplicate. */
static inbox_statement insert = {
	.text = "INSERT INTO %1$s.inbox_claim (source_id, key, payload_hash, publish_time, claimed_at)"
			" SELECT $1, c.key, c.payload_hash, c.publish_time, $5"
			" FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4))"
			" AS c(key, payload_hash, publish_time)"
#ifndef INBOX_WITHOUT_CONFLICT_TARGET
			" ON CONFLICT (source_id, key) DO NOTHING RETURNING key",
#else
			" ON CONFLICT DO NOTHING RETURNING key",
#endif
	.nargs = 5,
	.types = insert_types};

static void
set_insert_values(Datum *values, const inbox_source *source, inbox_message **sorted, int n)
{
	Datum *keys = palloc(sizeof(Datum) * n);
	Datum *hashes = palloc(sizeof(Datum) * n);
	Datum *times = palloc(sizeof(Datum) * n);
	bool *no_hash = palloc(sizeof(bool) * n);
	bool *no_time = palloc(sizeof(bool) * n);
	int lower = 1;

	for (int i = 0; i < n; i++)
	{
		keys[i] = PointerGetDatum(sorted[i]->key);
		hashes[i] = Int64GetDatum(sorted[i]->hash);
		no_hash[i] = !sorted[i]->hashed;
		times[i] = TimestampTzGetDatum(sorted[i]->publish_time);
		no_time[i] = !sorted[i]->published;
	}
	values[0] = Int32GetDatum(source->id);
	values[1] = PointerGetDatum(construct_array(keys, n, TEXTOID, -1, false, TYPALIGN_INT));
	values[2] = PointerGetDatum(construct_md_array(hashes, no_hash, 1, &n, &lower, INT8OID, 8,
												   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	values[3] = PointerGetDatum(construct_md_array(times, no_time, 1, &n, &lower, TIMESTAMPTZOID, 8,
												   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	values[4] = TimestampTzGetDatum(GetCurrentTimestamp());
}

/* The rows come back in the order of the messages, without those that were not inserted. */
static int
keep_not_inserted(inbox_message **sorted, int n, uint64 inserted)
{
	uint64 row = 0;
	int kept = 0;

	for (int i = 0; i < n; i++)
	{
		bool isnull;
		text *key = row < inserted
						? DatumGetTextPP(SPI_getbinval(SPI_tuptable->vals[row],
													   SPI_tuptable->tupdesc, 1, &isnull))
						: NULL;

		if (key != NULL && inbox_key_compare(key, sorted[i]->key) == 0)
			row++;
		else
			sorted[kept++] = sorted[i];
	}
	if (row != inserted)
		elog(ERROR, "claims came back in another order than they were given");
	return kept;
}

static int
insert_claims(const inbox_home *home, const inbox_source *source, inbox_message **sorted, int n)
{
	Datum values[lengthof(insert_types)];
	inbox_caller caller;
	uint64 inserted;

	set_insert_values(values, source, sorted, n);
	caller = inbox_home_begin(home);
	inserted = inbox_home_run(home, &insert, values, NULL);
	if (inserted < (uint64) n)
		n = keep_not_inserted(sorted, n, inserted);
	else
		n = 0;
	inbox_home_end(caller);
	return n;
}

static void
refuse_lost_claim(const inbox_home *home, const inbox_message *message)
{
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("the key \"%s\" was neither inserted into inbox_claim nor found there",
						   text_to_cstring(message->key)),
					errdetail("A trigger or a rule on the table may keep rows out of it."),
					errhint("SELECT * FROM %s.inbox_check();", home->schema)));
}

void
inbox_claim_insert(const inbox_home *home, const inbox_source *source, inbox_message **open, int n)
{
	n = inbox_claims_settle(home, source, open, n);
	for (int round = 0; n > 0; round++)
	{
		if (round == MAX_ROUNDS)
			refuse_lost_claim(home, open[0]);
		n = insert_claims(home, source, open, n);
#ifndef INBOX_WITHOUT_ROW_READ
		if (n > 0)
			n = inbox_claims_settle(home, source, open, n);
#else
		while (n > 0)
			inbox_claim_settle(source, open[--n], false, 0);
#endif
	}
}
