/* SPDX-License-Identifier: PostgreSQL */
/*
 * inbox_process, inbox_accept and inbox_process_batch: from SQL's arguments to a call and back.
 */
#include "compat.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/timestamp.h"

#include "claim.h"
#include "process.h"

static const char *const verdict_names[] = {
	[INBOX_NEW] = "new",		   [INBOX_APPLIED] = "applied", [INBOX_DUPLICATE] = "duplicate",
	[INBOX_CONFLICT] = "conflict", [INBOX_PARKED] = "parked",	[INBOX_LATER] = "later",
	[INBOX_EXPIRED] = "expired"};

/* Also where only duplicates would be found: their verdict needs WAL of its own. */
static void
refuse_read_only(const char *function)
{
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);
	PreventCommandDuringRecovery(function);
}

static void
open_source(inbox_call *call, FunctionCallInfo fcinfo, int argument)
{
	call->home = inbox_home_find(fcinfo);
	inbox_source_read(call->home, PG_ARGISNULL(argument) ? NULL : PG_GETARG_TEXT_PP(argument),
					  &call->source);
}

static void
open_handler(inbox_call *call, inbox_handler *handler, FunctionCallInfo fcinfo, int argument)
{
	if (PG_ARGISNULL(argument))
		inbox_handler_refuse_null();
	inbox_handler_open(call->home, PG_GETARG_OID(argument), handler);
	call->handler = handler;
}

static bool
run_single(inbox_call *call, FunctionCallInfo fcinfo, Oid payload_type)
{
	inbox_message message = {.payload = {.type = payload_type, .isnull = PG_ARGISNULL(1)}};

	message.key = PG_ARGISNULL(0) ? NULL : PG_GETARG_TEXT_PP(0);
	inbox_message_check_key(message.key);
	if (!message.payload.isnull)
		message.payload.value = PointerGetDatum(PG_DETOAST_DATUM(PG_GETARG_DATUM(1)));
	call->messages = &message;
	call->count = 1;
	inbox_call_run(call, true);
	return message.verdict == INBOX_APPLIED;
}

static Datum
process(FunctionCallInfo fcinfo, Oid payload_type)
{
	inbox_call call = {0};
	inbox_handler handler;

	refuse_read_only("inbox_process()");
	open_source(&call, fcinfo, 3);
#ifdef INBOX_WITHOUT_SOURCE_SCOPE
	inbox_source_read(call.home, cstring_to_text(format_procedure(PG_GETARG_OID(2))), &call.source);
#endif
	open_handler(&call, &handler, fcinfo, 2);
	PG_RETURN_BOOL(run_single(&call, fcinfo, payload_type));
}

PG_FUNCTION_INFO_V1(inbox_process_jsonb);
PG_FUNCTION_INFO_V1(inbox_process_json);
PG_FUNCTION_INFO_V1(inbox_process_text);
PG_FUNCTION_INFO_V1(inbox_process_bytea);

Datum
inbox_process_jsonb(PG_FUNCTION_ARGS)
{
	return process(fcinfo, JSONBOID);
}

Datum
inbox_process_json(PG_FUNCTION_ARGS)
{
	return process(fcinfo, JSONOID);
}

Datum
inbox_process_text(PG_FUNCTION_ARGS)
{
	return process(fcinfo, TEXTOID);
}

Datum
inbox_process_bytea(PG_FUNCTION_ARGS)
{
	return process(fcinfo, BYTEAOID);
}

PG_FUNCTION_INFO_V1(inbox_accept);

Datum
inbox_accept(PG_FUNCTION_ARGS)
{
	inbox_call call = {0};

	refuse_read_only("inbox_accept()");
	open_source(&call, fcinfo, 2);
	PG_RETURN_BOOL(run_single(&call, fcinfo, BYTEAOID));
}

PG_FUNCTION_INFO_V1(inbox_claim_key);

Datum
inbox_claim_key(PG_FUNCTION_ARGS)
{
	inbox_call call = {0};
	inbox_message message = {.payload = {.type = BYTEAOID, .isnull = PG_ARGISNULL(2)}};
	inbox_claims claims;

	refuse_read_only("inbox_claim_key()");
	open_source(&call, fcinfo, 0);
	message.key = PG_ARGISNULL(1) ? NULL : PG_GETARG_TEXT_PP(1);
	inbox_message_check_key(message.key);
	if (!message.payload.isnull)
		message.payload.value = PointerGetDatum(PG_GETARG_BYTEA_PP(2));
	message.published = !PG_ARGISNULL(3);
	message.publish_time = message.published ? PG_GETARG_TIMESTAMPTZ(3) : 0;
	inbox_message_hash(&message, 1);
	inbox_claims_open(&claims, &message, 1);
	inbox_claims_insert(call.home, &call.source, &claims);
	PG_RETURN_TEXT_P(cstring_to_text(verdict_names[message.verdict]));
}

static void
return_verdicts(FunctionCallInfo fcinfo, const inbox_call *call)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	for (int i = 0; i < call->count; i++)
	{
		const inbox_message *message = &call->messages[i];
		Datum values[] = {Int32GetDatum(message->ordinal), PointerGetDatum(message->key),
						  CStringGetTextDatum(verdict_names[message->verdict])};
		bool nulls[lengthof(values)] = {false};

		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
}

PG_FUNCTION_INFO_V1(inbox_process_batch);

Datum
inbox_process_batch(PG_FUNCTION_ARGS)
{
	inbox_call call = {0};
	inbox_handler handler;
	MemoryContext batch =
		AllocSetContextCreate(CurrentMemoryContext, "inbox batch", ALLOCSET_DEFAULT_SIZES);
	MemoryContext previous;

	refuse_read_only("inbox_process_batch()");
	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("messages is NULL")));
	previous = MemoryContextSwitchTo(batch);
	open_source(&call, fcinfo, 2);
	open_handler(&call, &handler, fcinfo, 1);
	call.messages = inbox_message_array(call.home, PG_GETARG_DATUM(0), &call.source, &call.count);
	inbox_call_run(&call, false);
	return_verdicts(fcinfo, &call);
	MemoryContextSwitchTo(previous);
	MemoryContextDelete(batch);
	return (Datum) 0;
}
