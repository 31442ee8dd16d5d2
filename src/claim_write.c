/* SPDX-License-Identifier: PostgreSQL */
/*
 * Claims written to table and index directly. Against INSERT … ON CONFLICT this saves a second
 * descent of the index, the speculative insertion and a record of WAL for each row.
 *
 * What ON CONFLICT does row by row is done here for all keys of a call at once, under a lock of the
 * source's claims that is held for that long only: look every key up, as it is at this moment,
 * uncommitted claims included; if one is another transaction's, give the lock back, wait for that
 * transaction and start again; if all are free, insert them. A call that waits has claimed nothing,
 * so that calls cannot wait for each other in a circle.
 *
 * Looking up costs as much as inserting, and nearly always all keys are free. So a backend that has
 * met no duplicate lately inserts at once, and lets the index say whether they were. If not, a
 * subtransaction takes back what was inserted, nobody having been waited for.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "claim.h"
#include "claim_index.h"
#include "fault_point.h"

/* About as many as a page takes. */
#define CHUNK 64
/* Below this a subtransaction costs more than looking up. */
#define FEW 8
/* After so many calls without a duplicate the next one is expected to have none either. */
#define CALLS_TO_TRUST 8

/* ---- the table as it was created ---------------------------------------------------------- */

static bool
has_insert_triggers(const TriggerDesc *triggers)
{
	return triggers != NULL &&
		   (triggers->trig_insert_before_row || triggers->trig_insert_after_row ||
			triggers->trig_insert_instead_row || triggers->trig_insert_before_statement ||
			triggers->trig_insert_after_statement || triggers->trig_insert_new_table);
}

static bool
is_plain(Relation table)
{
	const TupleConstr *constraints = RelationGetDescr(table)->constr;

	return !IsolationUsesXactSnapshot() && table->rd_rel->relkind == RELKIND_RELATION &&
		   table->rd_rules == NULL && !has_insert_triggers(table->trigdesc) &&
		   RelationGetNumberOfAttributes(table) == CLAIM_COLUMNS && constraints != NULL &&
		   constraints->num_check == 1 && !constraints->has_generated_stored &&
		   list_length(RelationGetIndexList(table)) == 1;
}

static void
check_right(const inbox_home *home)
{
	AclResult result = pg_class_aclcheck(home->claim, home->owner, ACL_INSERT);

	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_TABLE, get_rel_name(home->claim));
}

/* ---- looking up --------------------------------------------------------------------------- */

typedef struct busy_claim
{
	TransactionId xid; /* of the transaction that inserts or deletes it, or invalid */
	uint32 token;	   /* of its insertion, if that is speculative */
	ItemPointerData place;
} busy_claim;

/* A row that another transaction is inserting or deleting decides nothing yet. */
static bool
is_busy(const inbox_claim_reader *reader, const SnapshotData *now, busy_claim *busy)
{
#ifdef INBOX_WITHOUT_WAITING
	return false;
#endif
	busy->xid = TransactionIdIsValid(now->xmin) ? now->xmin : now->xmax;
	busy->token = TransactionIdIsValid(now->xmin) ? now->speculativeToken : 0;
	busy->place = reader->slot->tts_tid;
	return TransactionIdIsValid(busy->xid);
}

static int
drop_settled(inbox_message **open, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
	{
		if (open[i]->verdict == INBOX_NEW)
			open[kept++] = open[i];
	}
	return kept;
}

/* Settles what has a claim; returns how many are left, or -1 if there is a busy one. */
static int
look_up(inbox_claim_reader *reader, const SnapshotData *now, const inbox_source *source,
		inbox_message **open, int n, busy_claim *busy)
{
	for (int i = 0; i < n; i++)
	{
		bool hashed;
		int64 hash;

		if (!inbox_claim_read(reader, open[i]->key, &hashed, &hash))
			continue;
		if (is_busy(reader, now, busy))
			return -1;
		inbox_claim_settle(source, open[i], hashed, hash);
	}
	return drop_settled(open, n);
}

static void
wait_for(const inbox_claim_reader *reader, busy_claim *busy)
{
	if (busy->token != 0)
		SpeculativeInsertionWait(busy->xid, busy->token);
	else
		XactLockTableWait(busy->xid, reader->table, &busy->place, XLTW_InsertIndexUnique);
}

static void
acquire(const LOCKTAG *lock, LOCKMODE mode)
{
#ifndef INBOX_WITHOUT_CLAIMS_LOCK
	(void) LockAcquire(lock, mode, false, false);
#endif
}

static void
release(const LOCKTAG *lock, LOCKMODE mode)
{
#ifndef INBOX_WITHOUT_CLAIMS_LOCK
	(void) LockRelease(lock, mode, false);
#endif
}

/* Returns, with the lock held, how many messages have keys that nobody has. */
static int
look_up_or_wait(inbox_claim_reader *reader, const SnapshotData *now, const LOCKTAG *lock,
				const inbox_source *source, inbox_message **open, int n)
{
	for (;;)
	{
		busy_claim busy;
		int left;

		acquire(lock, ExclusiveLock);
		left = look_up(reader, now, source, open, n, &busy);
		if (left >= 0)
			return left;
		release(lock, ExclusiveLock);
		n = drop_settled(open, n);
		FAULT_POINT("claim-wait");
		wait_for(reader, &busy);
	}
}

/* ---- inserting ---------------------------------------------------------------------------- */

static void
fill_slot(TupleTableSlot *slot, const inbox_source *source, const inbox_message *message,
		  TimestampTz now)
{
	Datum *values = slot->tts_values - 1; /* the columns count from 1 */
	bool *isnull = slot->tts_isnull - 1;

	ExecClearTuple(slot);
	memset(slot->tts_isnull, false, sizeof(bool) * CLAIM_COLUMNS);
	values[CLAIM_SOURCE_ID] = Int32GetDatum(source->id);
	values[CLAIM_KEY] = PointerGetDatum(message->key);
	values[CLAIM_PAYLOAD_HASH] = Int64GetDatum(message->hash);
	isnull[CLAIM_PAYLOAD_HASH] = !message->hashed;
	values[CLAIM_PUBLISH_TIME] = TimestampTzGetDatum(message->publish_time);
	isnull[CLAIM_PUBLISH_TIME] = !message->published;
	values[CLAIM_CLAIMED_AT] = TimestampTzGetDatum(now);
	ExecStoreVirtualTuple(slot);
}

/* Only one who does not take our lock can have been faster: an import, say, in this millisecond. */
static void
refuse_simultaneous_claim(const inbox_message *message)
{
	ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					errmsg("the key \"%s\" is being claimed by another transaction",
						   text_to_cstring(message->key)),
					errhint("Do the transaction again.")));
}

/* Whether no other row, of whatever transaction, has this key. */
static bool
insert_index_entry(const inbox_claim_reader *reader, IndexInfo *info, ItemPointer row,
				   const inbox_source *source, const inbox_message *message)
{
	Datum values[] = {Int32GetDatum(source->id), PointerGetDatum(message->key)};
	bool isnull[lengthof(values)] = {false};

#ifdef INBOX_WITHOUT_INDEX_ANSWER
	(void) index_insert(reader->index, values, isnull, row, reader->table, UNIQUE_CHECK_PARTIAL,
						false, info);
	return true;
#endif
	return index_insert(reader->index, values, isnull, row, reader->table, UNIQUE_CHECK_PARTIAL,
						false, info);
}

/* Returns the first message whose key somebody has, or NULL when all are inserted. */
static const inbox_message *
insert_all(const inbox_claim_reader *reader, const inbox_source *source, inbox_message **open,
		   int n)
{
	IndexInfo *info = BuildIndexInfo(reader->index);
	CommandId command = GetCurrentCommandId(true);
	TimestampTz now = GetCurrentTimestamp();
	/* The copy is not counted; the slots would count the table's own up and down. */
	TupleDesc desc = CreateTupleDescCopy(RelationGetDescr(reader->table));
	const inbox_message *taken = NULL;
	TupleTableSlot *slots[CHUNK];
	int made = Min(n, CHUNK);

	for (int i = 0; i < made; i++)
		slots[i] = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	for (int done = 0; done < n && taken == NULL; done += CHUNK)
	{
		int chunk = Min(n - done, CHUNK);

		for (int i = 0; i < chunk; i++)
			fill_slot(slots[i], source, open[done + i], now);
		table_multi_insert(reader->table, slots, chunk, command, 0, NULL);
		FAULT_POINT("claim-heap");
		for (int i = 0; i < chunk && taken == NULL; i++)
		{
			if (!insert_index_entry(reader, info, &slots[i]->tts_tid, source, open[done + i]))
				taken = open[done + i];
		}
	}
	FAULT_POINT("claim-index");
	for (int i = 0; i < made; i++)
		ExecDropSingleTupleTableSlot(slots[i]);
	return taken;
}

/* ---- with and without looking up ---------------------------------------------------------- */

/* Of this backend. When it misleads, that costs time and no more. */
static int calls_without_duplicate = 0;

static bool
insert_unseen(const inbox_claim_reader *reader, const LOCKTAG *lock, const inbox_source *source,
			  inbox_message **open, int n)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	const inbox_message *volatile taken;

	acquire(lock, ShareLock);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	/* Whoever catches an error would undo our subtransaction for his own, which would live on. */
	PG_TRY();
	{
		taken = insert_all(reader, source, open, n);
		if (taken == NULL)
			ReleaseCurrentSubTransaction();
		else
		{
			FAULT_POINT("claim-taken");
			RollbackAndReleaseCurrentSubTransaction();
		}
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		ReThrowError(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	release(lock, ShareLock);
	return taken == NULL;
}

static void
insert_unclaimed(inbox_claim_reader *reader, const SnapshotData *now, const LOCKTAG *lock,
				 const inbox_source *source, inbox_message **open, int n)
{
	int left = look_up_or_wait(reader, now, lock, source, open, n);
	const inbox_message *taken = left > 0 ? insert_all(reader, source, open, left) : NULL;

	if (taken != NULL)
		refuse_simultaneous_claim(taken);
	release(lock, ExclusiveLock);
	calls_without_duplicate = left == n ? calls_without_duplicate + 1 : 0;
}

bool
inbox_claim_write(const inbox_home *home, const inbox_source *source, inbox_message **open, int n)
{
	inbox_claim_reader reader;
	SnapshotData now;
	LOCKTAG lock;
	bool plain;

	InitDirtySnapshot(now);
	inbox_claim_reader_open(&reader, home, source->id, &now);
	plain = is_plain(reader.table);
	if (plain)
	{
		check_right(home);
		SET_LOCKTAG_OBJECT(lock, MyDatabaseId, home->claim, source->id, 0);
		if (n < FEW || calls_without_duplicate < CALLS_TO_TRUST ||
			!insert_unseen(&reader, &lock, source, open, n))
			insert_unclaimed(&reader, &now, &lock, source, open, n);
		CommandCounterIncrement();
	}
	inbox_claim_reader_close(&reader);
	return plain;
}
