/* SPDX-License-Identifier: PostgreSQL */
/*
 * An index scan of our own: the planner would keep a plan made while the table was small, and scan
 * all of it when it no longer is.
 */
#include "compat.h"

#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_collation.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

#include "claim_index.h"

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

void
inbox_claim_reader_open(inbox_claim_reader *reader, const inbox_home *home, int32 source_id,
						Snapshot snapshot)
{
	Oid index;

	reader->table = table_open(home->claim, RowExclusiveLock);
	index = inbox_primary_key(reader->table);
	if (!OidIsValid(index))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("%s has no primary key", RelationGetRelationName(reader->table)),
						errhint("ALTER TABLE %s.inbox_claim ADD PRIMARY KEY (source_id, key);",
								home->schema)));
	reader->index = index_open(index, RowExclusiveLock);
	check_index(reader->table, reader->index);
	reader->slot = table_slot_create(reader->table, NULL);
	reader->scan = inbox_index_beginscan(reader->table, reader->index, snapshot, 2);
	ScanKeyInit(&reader->keys[0], 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(source_id));
	ScanKeyInit(&reader->keys[1], 2, BTEqualStrategyNumber, F_TEXTEQ, (Datum) 0);
}

bool
inbox_claim_read(inbox_claim_reader *reader, const text *key, bool *hashed, int64 *hash)
{
	bool isnull;

	reader->keys[1].sk_argument = PointerGetDatum(key);
	index_rescan(reader->scan, reader->keys, 2, NULL, 0);
	if (!index_getnext_slot(reader->scan, ForwardScanDirection, reader->slot))
		return false;
	*hash = DatumGetInt64(slot_getattr(reader->slot, CLAIM_PAYLOAD_HASH, &isnull));
	*hashed = !isnull;
	return true;
}

void
inbox_claim_reader_close(inbox_claim_reader *reader)
{
	index_endscan(reader->scan);
	ExecDropSingleTupleTableSlot(reader->slot);
	index_close(reader->index, RowExclusiveLock);
	table_close(reader->table, RowExclusiveLock);
}
