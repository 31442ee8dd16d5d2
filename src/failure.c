/* SPDX-License-Identifier: PostgreSQL */
/*
 * Failures: what a call that did not fail itself has to write about them.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "failure.h"
#include "fault_point.h"
#include "promise.h"

void
inbox_failure_expire(const inbox_source *source, inbox_claims *claims)
{
	if (!source->forgetful)
		return;
	for (int i = 0; i < claims->opened; i++)
	{
		inbox_message *message = claims->open[i];

		if (message->published && message->publish_time < source->purged_before)
		{
			message->verdict = INBOX_EXPIRED;
			/* It may be kept already, by another transaction. */
			inbox_promise(true);
		}
	}
	inbox_claims_drop_decided(claims);
}

/* ---- kept messages ---------------------------------------------------------------------- */

#define KEEP                                                                                      \
	"INSERT INTO %1$s.inbox_failure (source_id, key, payload, attributes, ordering_key,"          \
	" message_id, publish_time, delivery_attempt, payload_hash, status, reason, sqlstate, error)" \
	" SELECT $1, m.key, m.payload, m.attributes, m.ordering_key, m.message_id, m.publish_time,"   \
	" m.delivery_attempt, $3, $4, $4, $5, $6 FROM (SELECT ($2).*) AS m"

static const Oid keep_types[] = {INT4OID, InvalidOid, INT8OID, TEXTOID, TEXTOID, TEXTOID};

/* A message that comes again is kept once. */
static inbox_statement keep = {
	.text = KEEP " ON CONFLICT (source_id, key, status, payload_hash)"
				 " WHERE status OPERATOR(pg_catalog.=) ANY ('{conflict,expired}') DO NOTHING",
	.nargs = 6,
	.types = keep_types};

/* It may have failed before its ordering key was parked: then its row says so from now on. */
static inbox_statement park = {.text = KEEP
							   " ON CONFLICT (source_id, key)"
							   " WHERE status OPERATOR(pg_catalog.=) ANY ('{retrying,dead,parked}')"
							   " DO UPDATE SET status = EXCLUDED.status, reason = EXCLUDED.reason,"
							   " retry_at = NULL",
							   .nargs = 6,
							   .types = keep_types};

typedef struct kept_as
{
	const char *status;
	const char *sqlstate;
	const char *error;
} kept_as;

static const kept_as kept[] = {
	[INBOX_CONFLICT] = {"conflict", "IX001", "the key was claimed with another payload"},
	[INBOX_PARKED] = {"parked", "IX004", "waits for an earlier message of its ordering key"},
	[INBOX_EXPIRED] = {"expired", NULL, "published before the time from which keys are kept"}};

static void
keep_message(const inbox_home *home, const inbox_source *source, const inbox_message *message)
{
	const kept_as *as = &kept[message->verdict];
	Datum values[lengthof(keep_types)];
	char nulls[lengthof(keep_types) + 1] = "      ";
	inbox_caller caller;

	values[0] = Int32GetDatum(source->id);
	values[1] = inbox_message_row(home, message, source);
	values[2] = Int64GetDatum(message->hash);
	nulls[2] = message->hashed ? ' ' : 'n';
	values[3] = CStringGetTextDatum(as->status);
	nulls[4] = as->sqlstate != NULL ? ' ' : 'n';
	values[4] = as->sqlstate != NULL ? CStringGetTextDatum(as->sqlstate) : (Datum) 0;
	values[5] = CStringGetTextDatum(as->error);
	FAULT_POINT("failure-keep");
	caller = inbox_home_begin(home);
	(void) inbox_home_run(home, message->verdict == INBOX_PARKED ? &park : &keep, values, nulls);
	inbox_home_end(caller);
}

void
inbox_failure_keep(const inbox_home *home, const inbox_source *source,
				   const inbox_message *messages, int count)
{
	for (int i = 0; i < count; i++)
	{
		inbox_verdict verdict = messages[i].verdict;

		if (verdict == INBOX_CONFLICT || verdict == INBOX_PARKED || verdict == INBOX_EXPIRED)
			keep_message(home, source, &messages[i]);
	}
}

/* ---- messages that are applied at last --------------------------------------------------- */

static const Oid forget_types[] = {INT4OID, TEXTARRAYOID};

static inbox_statement forget = {
	.text = "DELETE FROM %1$s.inbox_failure f USING pg_catalog.unnest($2) AS k(key)"
			" WHERE f.source_id OPERATOR(pg_catalog.=) $1"
			" AND f.key OPERATOR(pg_catalog.=) k.key"
			" AND f.status OPERATOR(pg_catalog.=) 'retrying'",
	.nargs = 2,
	.types = forget_types};

void
inbox_failure_forget(const inbox_home *home, const inbox_source *source,
					 const inbox_message *messages, int count)
{
	Datum *keys = palloc(sizeof(Datum) * (count + 1));
	Datum values[lengthof(forget_types)];
	inbox_caller caller;
	int n = 0;

	for (int i = 0; i < count; i++)
	{
		if (messages[i].verdict == INBOX_APPLIED || messages[i].verdict == INBOX_DUPLICATE ||
			messages[i].verdict == INBOX_CONFLICT || messages[i].verdict == INBOX_EXPIRED)
			keys[n++] = PointerGetDatum(messages[i].key);
	}
	if (n == 0)
		return;
	values[0] = Int32GetDatum(source->id);
	values[1] = PointerGetDatum(construct_array(keys, n, TEXTOID, -1, false, TYPALIGN_INT));
	caller = inbox_home_begin(home);
	(void) inbox_home_run(home, &forget, values, NULL);
	inbox_home_end(caller);
}
