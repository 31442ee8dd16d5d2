/* SPDX-License-Identifier: PostgreSQL */
/*
 * A verdict is a promise: who reads COMMIT after it will acknowledge the message for good.
 *
 * A transaction that only found duplicates writes no WAL, so that its COMMIT would wait neither
 * for the disk nor for a standby, although the rows it found may not have reached either (an
 * asynchronous commit, a cancelled wait for a standby). One record of its own WAL makes its COMMIT
 * wait for everything before that record. And a lower synchronous_commit, wherever it was set,
 * must not make any such COMMIT return early.
 */
#include "compat.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "fmgr.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "utils/guc.h"

#include "fault_point.h"
#include "promise.h"

static const struct config_enum_entry floor_options[] = {
	{"local", SYNCHRONOUS_COMMIT_LOCAL_FLUSH, false},
	{"remote_write", SYNCHRONOUS_COMMIT_REMOTE_WRITE, false},
	{"on", SYNCHRONOUS_COMMIT_REMOTE_FLUSH, false},
	{"remote_apply", SYNCHRONOUS_COMMIT_REMOTE_APPLY, false},
	{NULL, 0, false}};

static int min_synchronous_commit = SYNCHRONOUS_COMMIT_REMOTE_FLUSH;

/* Of the transaction in progress. A rolled-back savepoint leaves them: its verdict was read. */
static bool verdict_given = false;
static bool verdict_needs_proof = false;

static void
raise_synchronous_commit(void)
{
#ifndef INBOX_WITHOUT_COMMIT_FLOOR
	if (synchronous_commit >= min_synchronous_commit)
		return;
	(void) set_config_option("synchronous_commit",
							 GetConfigOption("inbox.min_synchronous_commit", false, false),
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
#endif
}

/* An xid alone does not make COMMIT wait, nor does WAL without an xid: it takes both. */
static bool
commit_waits_for_wal(void)
{
	return TransactionIdIsValid(GetTopTransactionIdIfAny()) && XactLastRecEnd != 0;
}

/* Where the last record of anybody ends. */
static XLogRecPtr
end_of_wal(void)
{
	XLogRecPtr next = GetXLogInsertRecPtr();
	uint32 offset = XLogSegmentOffset(next, wal_segment_size);

	/* Behind the header of a page stands the record to come; the last one ends before it. */
	if (offset == SizeOfXLogLongPHD)
		return next - SizeOfXLogLongPHD;
	return offset % XLOG_BLCKSZ == SizeOfXLogShortPHD ? next - SizeOfXLogShortPHD : next;
}

/*
 * Nearly always everything is on disk already, so that looking is all it takes. Only a COMMIT of
 * ours, which takes WAL of ours, waits for a standby and says so when that wait is cancelled.
 */
static void
prove_what_was_read(void)
{
#ifndef INBOX_WITHOUT_DURABLE_DUPLICATE
	FAULT_POINT("proof");
	if (commit_waits_for_wal())
		return;
	if (SyncRepRequested() && SyncRepStandbyNames != NULL && SyncRepStandbyNames[0] != '\0')
		(void) inbox_log_message("inbox");
	else
		XLogFlush(end_of_wal());
#endif
}

static void
refuse_prepare(void)
{
#ifndef INBOX_WITHOUT_PREPARE_REFUSED
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot PREPARE a transaction that used inbox"),
			 errdetail("A prepared transaction holds its keys, and everyone who has the same "
					   "message waits until somebody ends it."),
			 errhint("Use COMMIT, or do the work that needs two-phase commit elsewhere.")));
#endif
}

static void
at_transaction_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			if (verdict_given)
			{
				FAULT_POINT("pre-commit");
				raise_synchronous_commit();
			}
			if (verdict_needs_proof)
				prove_what_was_read();
			break;
		case XACT_EVENT_PRE_PREPARE:
			if (verdict_given)
				refuse_prepare();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			if (verdict_given)
				FAULT_POINT_ONLY(event == XACT_EVENT_COMMIT ? "committed" : "aborted");
			verdict_given = verdict_needs_proof = false;
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			break;
	}
}

void
inbox_promise_init(void)
{
	DefineCustomEnumVariable("inbox.min_synchronous_commit",
							 "The lowest synchronous_commit of a transaction that used inbox.",
							 "A lower one, wherever it was set, is raised to this at COMMIT.",
							 &min_synchronous_commit, SYNCHRONOUS_COMMIT_REMOTE_FLUSH,
							 floor_options, PGC_SUSET, 0, NULL, NULL, NULL);
	RegisterXactCallback(at_transaction_event, NULL);
}

void
inbox_promise(bool already)
{
	verdict_given = true;
	if (already)
		verdict_needs_proof = true;
}

PG_FUNCTION_INFO_V1(inbox_durable);

Datum
inbox_durable(PG_FUNCTION_ARGS)
{
	inbox_promise(PG_GETARG_BOOL(0));
	PG_RETURN_VOID();
}
