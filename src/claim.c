/* SPDX-License-Identifier: PostgreSQL */
/*
 * Claims: looked up first, because a duplicate then costs a look-up; inserted where there is none;
 * and read again where another transaction was faster. No verdict follows from rows not inserted:
 * only from a row that was read.
 */
#include "compat.h"

#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "claim.h"
#include "promise.h"

/* A claim found gone was purged; a purge that is faster so many times is no purge. */
#define MAX_ROUNDS 10

/* The columns of inbox_claim. */
enum
{
	CLAIM_SOURCE_ID = 1,
	CLAIM_KEY,
	CLAIM_PAYLOAD_HASH
};

/* ---- sorted, so that calls that share keys cannot wait for each other in a circle -------- */

static int
compare_keys(const text *a, const text *b)
{
	size_t a_size = VARSIZE_ANY_EXHDR(a);
	size_t b_size = VARSIZE_ANY_EXHDR(b);
	int order = memcmp(VARDATA_ANY(a), VARDATA_ANY(b), Min(a_size, b_size));

	if (order != 0 || a_size == b_size)
		return order;
	return a_size < b_size ? -1 : 1;
}

static int
compare_messages(const void *a, const void *b)
{
	const inbox_message *left = *(inbox_message *const *) a;
	const inbox_message *right = *(inbox_message *const *) b;
	int order = compare_keys(left->key, right->key);

	return order != 0 ? order : left->ordinal - right->ordinal;
}

#ifdef INBOX_WITHOUT_SORTED_CLAIMS
static int
compare_ordinals(const void *a, const void *b)
{
	return (*(inbox_message *const *) a)->ordinal - (*(inbox_message *const *) b)->ordinal;
}
#endif

void
inbox_claims_open(inbox_claims *claims, inbox_message *messages, int count)
{
	claims->count = count;
	claims->sorted = palloc(sizeof(inbox_message *) * (count + 1));
	claims->open = palloc(sizeof(inbox_message *) * (count + 1));
	claims->opened = 0;
	for (int i = 0; i < count; i++)
		claims->sorted[i] = &messages[i];
	qsort(claims->sorted, count, sizeof(inbox_message *), compare_messages);
	for (int i = 0; i < count; i++)
	{
		if (i == 0 || compare_keys(claims->sorted[i - 1]->key, claims->sorted[i]->key) != 0)
			claims->open[claims->opened++] = claims->sorted[i];
	}
#ifdef INBOX_WITHOUT_SORTED_CLAIMS
	qsort(claims->open, claims->opened, sizeof(inbox_message *), compare_ordinals);
#endif
}

void
inbox_claims_drop_decided(inbox_claims *claims)
{
	int kept = 0;

	for (int i = 0; i < claims->opened; i++)
	{
		if (claims->open[i]->verdict == INBOX_NEW)
			claims->open[kept++] = claims->open[i];
	}
	claims->opened = kept;
}

const inbox_message *
inbox_claims_first(const inbox_claims *claims, const text *key)
{
	int low = 0;
	int high = claims->count;

	while (low < high)
	{
		int middle = (low + high) / 2;

		if (compare_keys(claims->sorted[middle]->key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < claims->count && compare_keys(claims->sorted[low]->key, key) == 0)
		return claims->sorted[low];
	return NULL;
}

/* ---- verdicts --------------------------------------------------------------------------- */

static void
settle(const inbox_source *source, inbox_message *message, bool hashed, int64 hash)
{
	bool comparable =
		source->compares && hashed && message->hashed && ((hash ^ message->hash) & 1) == 0;

	message->verdict = comparable && hash != message->hash ? INBOX_CONFLICT : INBOX_DUPLICATE;
	message->hash_claimed = hashed;
	message->claimed_hash = hash;
	inbox_promise(true);
}

void
inbox_claims_followers(const inbox_source *source, const inbox_claims *claims)
{
	inbox_message *first = NULL;

	for (int i = 0; i < claims->count; i++)
	{
		inbox_message *message = claims->sorted[i];

		if (first == NULL || compare_keys(first->key, message->key) != 0)
			first = message;
		else if (first->verdict == INBOX_NEW)
			settle(source, message, first->hashed, first->hash);
		else if (first->verdict == INBOX_DUPLICATE || first->verdict == INBOX_CONFLICT)
			settle(source, message, first->hash_claimed, first->claimed_hash);
		else
			message->verdict = first->verdict;
	}
}

/* ---- reading claims --------------------------------------------------------------------- */

/*
 * An index scan of our own: the planner would keep a plan made while the table was small, and scan
 * all of it when it no longer is.
 */
typedef struct claim_reader
{
	Relation table;
	Relation index;
	Snapshot snapshot;
	IndexScanDesc scan;
	TupleTableSlot *slot;
	ScanKeyData keys[2];
} claim_reader;

/* A key must be its bytes and the index complete, or two claims of one key could be let in. */
static void
check_index(Relation table, Relation index)
{
	Form_pg_index form = index->rd_index;

#ifdef INBOX_WITHOUT_INDEX_CHECK
	return;
#endif
	if (form->indisvalid && form->indisready && form->indnkeyatts == 2 &&
		form->indkey.values[0] == CLAIM_SOURCE_ID && form->indkey.values[1] == CLAIM_KEY &&
		index->rd_indcollation[1] == C_COLLATION_OID)
		return;
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("the primary key of %s is not the one it was created with",
						   RelationGetRelationName(table)),
					errhint("It has to be (source_id, key) with the collation \"C\" and valid.")));
}

/* Of the transaction where that has only one: what it cannot see is for INSERT to refuse. */
static Snapshot
snapshot_of_claims(void)
{
#if defined INBOX_WITHOUT_WAITING
	static SnapshotData dirty;

	InitDirtySnapshot(dirty);
	return &dirty;
#elif defined INBOX_WITHOUT_TRANSACTION_SNAPSHOT
	return GetLatestSnapshot();
#else
	return GetTransactionSnapshot();
#endif
}

static void
open_reader(claim_reader *reader, const inbox_home *home, int32 source_id)
{
	Oid index;

	reader->table = table_open(home->claim, AccessShareLock);
	index = inbox_primary_key(reader->table);
	if (!OidIsValid(index))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("%s has no primary key", RelationGetRelationName(reader->table)),
						errhint("ALTER TABLE %s.inbox_claim ADD PRIMARY KEY (source_id, key);",
								home->schema)));
	reader->index = index_open(index, AccessShareLock);
	check_index(reader->table, reader->index);
	reader->snapshot = RegisterSnapshot(snapshot_of_claims());
	reader->slot = table_slot_create(reader->table, NULL);
	reader->scan = inbox_index_beginscan(reader->table, reader->index, reader->snapshot, 2);
	ScanKeyInit(&reader->keys[0], 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(source_id));
	ScanKeyInit(&reader->keys[1], 2, BTEqualStrategyNumber, F_TEXTEQ, (Datum) 0);
}

static bool
read_claim(claim_reader *reader, const text *key, bool *hashed, int64 *hash)
{
	bool isnull;

	reader->keys[1].sk_argument = PointerGetDatum(key);
	index_rescan(reader->scan, reader->keys, 2, NULL, 0);
	if (!index_getnext_slot(reader->scan, ForwardScanDirection, reader->slot))
		return false;
	*hash = DatumGetInt64(slot_getattr(reader->slot, CLAIM_PAYLOAD_HASH, &isnull));
	*hashed = !isnull;
	ExecClearTuple(reader->slot);
	return true;
}

static void
close_reader(claim_reader *reader)
{
	index_endscan(reader->scan);
	ExecDropSingleTupleTableSlot(reader->slot);
	UnregisterSnapshot(reader->snapshot);
	index_close(reader->index, AccessShareLock);
	table_close(reader->table, AccessShareLock);
}

/* Settles the messages whose key has a row; the others are kept. Returns their number. */
static int
settle_claimed(const inbox_home *home, const inbox_source *source, inbox_message **sorted, int n)
{
	claim_reader reader;
	int kept = 0;

	open_reader(&reader, home, source->id);
	for (int i = 0; i < n; i++)
	{
		bool hashed;
		int64 hash;

		if (read_claim(&reader, sorted[i]->key, &hashed, &hash))
			settle(source, sorted[i], hashed, hash);
		else
			sorted[kept++] = sorted[i];
	}
	close_reader(&reader);
	return kept;
}

/* ---- inserting claims ------------------------------------------------------------------- */

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

		if (key != NULL && compare_keys(key, sorted[i]->key) == 0)
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
inbox_claims_find(const inbox_home *home, const inbox_source *source, inbox_claims *claims)
{
	claims->opened = settle_claimed(home, source, claims->open, claims->opened);
}

void
inbox_claims_insert(const inbox_home *home, const inbox_source *source, const inbox_claims *claims)
{
	int n = claims->opened;

	inbox_promise(false);
	for (int round = 0; n > 0; round++)
	{
		if (round == MAX_ROUNDS)
			refuse_lost_claim(home, claims->open[0]);
		n = insert_claims(home, source, claims->open, n);
#ifndef INBOX_WITHOUT_ROW_READ
		if (n > 0)
			n = settle_claimed(home, source, claims->open, n);
#else
		while (n > 0)
			settle(source, claims->open[--n], false, 0);
#endif
	}
}
