/* SPDX-License-Identifier: PostgreSQL */
/*
 * inbox_retry_one: an operator applies a message that is dead, parked, in conflict or expired.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"

#include "claim.h"
#include "process.h"
#include "promise.h"

typedef struct failure
{
	int64 id;
	char *status;
	text *source;
	char *handler; /* NULL: the source was never served */
	text *key;
	Datum row;		 /* as an inbox_message, with what the operator corrected */
	int64 waits_for; /* 0, or the failure that comes before it in its ordering key */
} failure;

static const Oid take_types[] = {INT8OID, TEXTOID, BYTEAOID};

/* Locked, so that of two operators the second finds it settled. */
static inbox_statement take = {
	.text = "SELECT f.status, s.name, s.handler, f.key,"
			" ROW(COALESCE($2, f.key), COALESCE($3, f.payload), f.attributes, f.ordering_key,"
			" f.message_id, f.publish_time, f.delivery_attempt, s.name)::%1$s.inbox_message,"
			" (SELECT e.id FROM %1$s.inbox_failure e"
			" WHERE e.source_id OPERATOR(pg_catalog.=) f.source_id"
			" AND e.ordering_key OPERATOR(pg_catalog.=) f.ordering_key"
			" AND e.status OPERATOR(pg_catalog.=) ANY ('{dead,parked}')"
			" AND (f.status OPERATOR(pg_catalog.=) 'parked'"
			" OR f.status OPERATOR(pg_catalog.=) 'dead'"
			" AND s.order_policy OPERATOR(pg_catalog.=) 'park')"
			" AND ROW(COALESCE(e.publish_time, e.failed_at), e.id) OPERATOR(pg_catalog.<)"
			" ROW(COALESCE(f.publish_time, f.failed_at), f.id)"
			" ORDER BY COALESCE(e.publish_time, e.failed_at), e.id LIMIT 1)"
			" FROM %1$s.inbox_failure f JOIN %1$s.inbox_source s"
			" ON s.id OPERATOR(pg_catalog.=) f.source_id"
			" WHERE f.id OPERATOR(pg_catalog.=) $1 FOR UPDATE OF f",
	.nargs = 3,
	.types = take_types};

static inbox_statement resolve = {
	.text = "UPDATE %1$s.inbox_failure f SET status = 'resolved', retry_key = $2,"
			" retry_payload = $3, settled_at = pg_catalog.clock_timestamp(),"
			" settled_by = SESSION_USER, settled_why = 'retried'"
			" WHERE f.id OPERATOR(pg_catalog.=) $1",
	.nargs = 3,
	.types = take_types};

/* ---- the row ---------------------------------------------------------------------------- */

static void
refuse_missing(int64 id)
{
	ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
					errmsg("there is no failure with the id %lld", (long long) id),
					errhint("SELECT * FROM inbox_failure ORDER BY id;")));
}

static void
copy_row(failure *f, HeapTuple row, TupleDesc desc)
{
	bool isnull;

	f->status = SPI_getvalue(row, desc, 1);
	f->source = DatumGetTextPCopy(SPI_getbinval(row, desc, 2, &isnull));
	f->handler = SPI_getvalue(row, desc, 3);
	f->key = DatumGetTextPCopy(SPI_getbinval(row, desc, 4, &isnull));
	f->row = datumCopy(SPI_getbinval(row, desc, 5, &isnull), false, -1);
	f->waits_for = DatumGetInt64(SPI_getbinval(row, desc, 6, &isnull));
	if (isnull)
		f->waits_for = 0;
}

static void
take_failure(const inbox_home *home, failure *f, Datum *values, const char *nulls)
{
	MemoryContext context = CurrentMemoryContext;
	inbox_caller caller = inbox_home_begin(home);

	if (inbox_home_run(home, &take, values, nulls) == 0)
		refuse_missing(f->id);
	MemoryContextSwitchTo(context);
	copy_row(f, SPI_tuptable->vals[0], SPI_tuptable->tupdesc);
	inbox_home_end(caller);
}

static void
resolve_failure(const inbox_home *home, Datum *values, const char *nulls)
{
	inbox_caller caller = inbox_home_begin(home);

	(void) inbox_home_run(home, &resolve, values, nulls);
	inbox_home_end(caller);
	inbox_promise(false);
}

/* ---- what stands against it --------------------------------------------------------------- */

static bool
same_text(const text *a, const text *b)
{
	return VARSIZE_ANY_EXHDR(a) == VARSIZE_ANY_EXHDR(b) &&
		   memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
}

static bool
is_expired(const failure *f)
{
	return strcmp(f->status, "expired") == 0;
}

static void
check_failure(const failure *f, const text *key)
{
	bool new_key = key != NULL && !same_text(key, f->key);

	if (f->waits_for != 0)
		ereport(ERROR, (errcode(MAKE_SQLSTATE('I', 'X', '0', '0', '4')),
						errmsg("failure %lld waits for an earlier message of its ordering key",
							   (long long) f->id),
						errdetail("That is failure %lld.", (long long) f->waits_for),
						errhint("Retry or discard that one: the others follow in order.")));
	if (strcmp(f->status, "conflict") == 0 && !new_key)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("failure %lld is a conflict: its key belongs to another payload",
							   (long long) f->id),
						errhint("inbox_retry(%lld, key => 'a new key') applies it as a message of "
								"its own, inbox_discard(%lld, 'the reason') ends it.",
								(long long) f->id, (long long) f->id)));
	if (is_expired(f) && key == NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("failure %lld is expired: it may have been applied before its key"
							   " was forgotten",
							   (long long) f->id),
						errhint("If it was not, inbox_retry(%lld, key => %s) applies it; "
								"inbox_discard(%lld, 'the reason') ends it.",
								(long long) f->id, quote_literal_cstr(text_to_cstring(f->key)),
								(long long) f->id)));
	if (f->handler == NULL)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the source \"%s\" has no handler", text_to_cstring(f->source)),
						errhint("SELECT inbox_serve(%s, 'the handler', NULL);",
								quote_literal_cstr(text_to_cstring(f->source)))));
}

static bool
can_be_retried(const failure *f)
{
	return strcmp(f->status, "dead") == 0 || strcmp(f->status, "parked") == 0 ||
		   strcmp(f->status, "conflict") == 0 || is_expired(f);
}

/* The old key was claimed when the message died; a new one, or a forgotten one, has to be free. */
static void
claim_new_key(const inbox_call *call)
{
	inbox_claims claims;

	inbox_message_hash(call->messages, 1);
	inbox_claims_open(&claims, call->messages, 1);
	inbox_claims_find(call->home, &call->source, &claims);
	inbox_claims_insert(call->home, &call->source, &claims);
	if (call->messages[0].verdict == INBOX_NEW)
		return;
	ereport(ERROR,
			(errcode(MAKE_SQLSTATE('I', 'X', '0', '0', '1')),
			 errmsg("the key \"%s\" is claimed already", text_to_cstring(call->messages[0].key)),
			 errhint("Choose one that no message has.")));
}

static void
apply(const inbox_home *home, const failure *f)
{
	inbox_message message = {0};
	inbox_handler handler;
	inbox_call call = {.home = home, .handler = &handler, .messages = &message, .count = 1};

	inbox_source_read(home, f->source, &call.source);
	inbox_source_lock(home, &call.source);
	inbox_handler_open(home, inbox_handler_find(f->handler), &handler);
	inbox_message_one(home, f->row, &call.source, &message);
	if (is_expired(f) || !same_text(message.key, f->key))
		claim_new_key(&call);
	message.verdict = INBOX_APPLIED;
	inbox_call_apply(&call);
	if (call.source.troubled)
		inbox_source_applied(home, &call.source);
}

PG_FUNCTION_INFO_V1(inbox_retry_one);

Datum
inbox_retry_one(PG_FUNCTION_ARGS)
{
	const inbox_home *home = inbox_home_find(fcinfo);
	failure f = {.id = PG_GETARG_INT64(0)};
	bool new_payload = !PG_ARGISNULL(1);
	bool new_key = !PG_ARGISNULL(2);
	Datum values[] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(2), PG_GETARG_DATUM(1)};
	char nulls[] = {' ', new_key ? ' ' : 'n', new_payload ? ' ' : 'n', '\0'};

	if (PG_ARGISNULL(0))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the id is NULL")));
	take_failure(home, &f, values, nulls);
	if (!can_be_retried(&f))
		PG_RETURN_BOOL(false);
	check_failure(&f, new_key ? PG_GETARG_TEXT_PP(2) : NULL);
	apply(home, &f);
	resolve_failure(home, values, nulls);
	PG_RETURN_BOOL(true);
}
