/* SPDX-License-Identifier: PostgreSQL */
/*
 * Claim first, then run: whoever sees a claim committed may rely on what its handler did.
 *
 * There is no savepoint: a handler's error undoes the whole call, and the claims with it.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"

#include "claim.h"
#include "failure.h"
#include "fault_point.h"
#include "order.h"
#include "process.h"

/* ---- results ---------------------------------------------------------------------------- */

typedef struct kept_results
{
	Datum *keys;
	Datum *values;
	int count;
	MemoryContext context;
} kept_results;

static const Oid result_types[] = {INT4OID, TEXTARRAYOID, JSONBARRAYOID};

static inbox_statement insert_results = {
	.text = "INSERT INTO %1$s.inbox_claim_result (source_id, key, result)"
			" SELECT $1, r.key, r.result"
			" FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3)) AS r(key, result)",
	.nargs = 3,
	.types = result_types};

static void
keep_result(kept_results *results, const inbox_message *message, Datum value)
{
	MemoryContext previous = MemoryContextSwitchTo(results->context);

	results->keys[results->count] = PointerGetDatum(message->key);
	results->values[results->count++] = PointerGetDatum(DatumGetJsonbPCopy(value));
	MemoryContextSwitchTo(previous);
}

static void
write_results(const inbox_call *call, const kept_results *results)
{
	Datum values[lengthof(result_types)];
	inbox_caller caller;

	if (results->count == 0)
		return;
	values[0] = Int32GetDatum(call->source.id);
	values[1] = PointerGetDatum(
		construct_array(results->keys, results->count, TEXTOID, -1, false, TYPALIGN_INT));
	values[2] = PointerGetDatum(
		construct_array(results->values, results->count, JSONBOID, -1, false, TYPALIGN_INT));
	caller = inbox_home_begin(call->home);
	(void) inbox_home_run(call->home, &insert_results, values, NULL);
	inbox_home_end(caller);
}

/* ---- handlers --------------------------------------------------------------------------- */

static void
run_one(const inbox_call *call, inbox_message *message, kept_results *results)
{
	inbox_message_context context;
	Datum result;
	bool isnull;

	inbox_message_entered(&context, message->ordinal, message->key);
	FAULT_POINT("handler-begin");
	result = inbox_handler_run(call->home, call->handler, message, &call->source, &isnull);
	FAULT_POINT("handler-end");
	if (!isnull)
		keep_result(results, message, result);
	inbox_message_left(&context);
}

void
inbox_call_apply(const inbox_call *call)
{
	kept_results results = {.context = CurrentMemoryContext};
	MemoryContext each =
		AllocSetContextCreate(CurrentMemoryContext, "inbox message", ALLOCSET_DEFAULT_SIZES);

	results.keys = palloc(sizeof(Datum) * (call->count + 1));
	results.values = palloc(sizeof(Datum) * (call->count + 1));
	for (int i = 0; i < call->count; i++)
	{
		MemoryContext previous;

		if (call->messages[i].verdict != INBOX_APPLIED)
			continue;
		CHECK_FOR_INTERRUPTS();
		previous = MemoryContextSwitchTo(each);
		run_one(call, &call->messages[i], &results);
		MemoryContextSwitchTo(previous);
		MemoryContextReset(each);
	}
	MemoryContextDelete(each);
	write_results(call, &results);
}

/* ---- the call --------------------------------------------------------------------------- */

static void
refuse_conflict(const inbox_call *call, const inbox_message *message)
{
	ereport(
		ERROR,
		(errcode(MAKE_SQLSTATE('I', 'X', '0', '0', '1')),
		 errmsg("the key \"%s\" was claimed with another payload", text_to_cstring(message->key)),
		 errdetail("Source \"%s\", payload hash %lld; the claim has %lld.",
				   text_to_cstring(call->source.name), (long long) message->hash,
				   (long long) message->claimed_hash),
		 errhint("A new intent needs a new key. A producer that writes the same intent in "
				 "other bytes each time can be let in with inbox_configure(%s, "
				 "conflict_check => false).",
				 quote_literal_cstr(text_to_cstring(call->source.name)))));
}

/* Seldom true, so that a source that forgets is as fast as one that does not. */
static bool
any_is_old(const inbox_call *call)
{
	for (int i = 0; i < call->count; i++)
	{
		const inbox_message *message = &call->messages[i];

		if (message->published && message->publish_time < call->source.purged_before)
			return true;
	}
	return false;
}

static void
decide(inbox_call *call)
{
	inbox_claims claims;

	inbox_message_hash(call->messages, call->count);
	inbox_claims_open(&claims, call->messages, call->count);
	if ((call->source.forgetful && any_is_old(call)) || call->source.holding)
	{
		/* Neither too old nor held back is what was applied before. */
		inbox_claims_find(call->home, &call->source, &claims);
		inbox_failure_expire(&call->source, &claims);
		inbox_order_hold(call->home, &call->source, &claims);
	}
	inbox_claims_insert(call->home, &call->source, &claims);
#ifndef INBOX_WITHOUT_PARK_AGAIN
	inbox_order_park(call->home, &call->source, &claims);
#endif
	inbox_claims_followers(&call->source, &claims);
}

/* Returns whether any message is to be applied. */
static bool
mark_applied(inbox_call *call, bool single)
{
	bool any = false;

	for (int i = 0; i < call->count; i++)
	{
		inbox_message *message = &call->messages[i];

		if (single && message->verdict == INBOX_CONFLICT)
			refuse_conflict(call, message);
		if (message->verdict != INBOX_NEW)
			continue;
		message->verdict = message->parks ? INBOX_PARKED : INBOX_APPLIED;
		any = any || !message->parks;
	}
	return any;
}

static void
write_failures(inbox_call *call, bool any_applied)
{
#ifndef INBOX_WITHOUT_SECOND_LOOK
	/* While a claim was waited for, a failure of that key may have been recorded. */
	inbox_source_read(call->home, call->source.name, &call->source);
#endif
	inbox_failure_keep(call->home, &call->source, call->messages, call->count);
	if (call->source.holding)
		inbox_failure_forget(call->home, &call->source, call->messages, call->count);
	if (any_applied && call->source.troubled)
		inbox_source_applied(call->home, &call->source);
}

void
inbox_call_run(inbox_call *call, bool single)
{
	bool any;

	if (call->count == 0)
		return;
	FAULT_POINT("call-begin");
	if (call->handler != NULL)
		inbox_source_lock(call->home, &call->source);
	decide(call);
	FAULT_POINT("decided");
	any = mark_applied(call, single);
	if (call->handler != NULL)
		inbox_call_apply(call);
	FAULT_POINT("applied");
	write_failures(call, any);
}
