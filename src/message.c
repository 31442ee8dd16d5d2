/* SPDX-License-Identifier: PostgreSQL */
/*
 * Messages: read from the arguments, checked, named in errors.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/cryptohash.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "message.h"

#define KEY_MAX 1024

/* ---- errors name the message ------------------------------------------------------------ */

static void
name_message(void *arg)
{
	const inbox_message_context *context = arg;
	StringInfoData line;

	initStringInfo(&line);
	appendStringInfoChar(&line, '{');
	if (context->ordinal > 0)
		appendStringInfo(&line, "\"ordinal\":%d,", context->ordinal);
	appendStringInfoString(&line, "\"key\":");
	if (context->key == NULL)
		appendStringInfoString(&line, "null");
	else
		escape_json(&line, text_to_cstring(context->key));
	appendStringInfoChar(&line, '}');
	errcontext("inbox: %s", line.data);
	pfree(line.data);
}

void
inbox_message_entered(inbox_message_context *context, int ordinal, const text *key)
{
	context->ordinal = ordinal;
	context->key = key;
	context->callback.callback = name_message;
	context->callback.arg = context;
	context->callback.previous = error_context_stack;
	error_context_stack = &context->callback;
}

void
inbox_message_left(const inbox_message_context *context)
{
	error_context_stack = context->callback.previous;
}

/* ---- keys ------------------------------------------------------------------------------- */

static void
refuse_key(const char *fact, const char *cause)
{
	ereport(ERROR,
			(errcode(MAKE_SQLSTATE('I', 'X', '0', '0', '2')),
			 errmsg("the idempotency key %s", fact), errdetail("%s", cause),
			 errhint("A key is 1 to %d bytes without a NUL byte; it is taken as it is and never "
					 "cut, because two keys cut to the same one would lose a message.",
					 KEY_MAX)));
}

void
inbox_message_check_key(const text *key)
{
	size_t length;

	if (key == NULL)
		refuse_key("is NULL", "Nothing tells this message from another.");
	length = VARSIZE_ANY_EXHDR(key);
#ifndef INBOX_WITHOUT_KEY_LENGTH
	if (length == 0)
		refuse_key("is empty", "Nothing tells this message from another.");
	if (length > KEY_MAX)
		refuse_key("is too long", psprintf("It has %zu bytes.", length));
#endif
#ifndef INBOX_WITHOUT_KEY_NUL
	if (memchr(VARDATA_ANY(key), '\0', length) != NULL)
		refuse_key("holds a NUL byte", "What follows it would be lost to programs in C.");
#endif
}

/* ---- arrays of messages ----------------------------------------------------------------- */

static void
check_source(const text *own, const inbox_source *source)
{
	if (VARSIZE_ANY_EXHDR(own) == VARSIZE_ANY_EXHDR(source->name) &&
		memcmp(VARDATA_ANY(own), VARDATA_ANY(source->name), VARSIZE_ANY_EXHDR(own)) == 0)
		return;
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("a message of source \"%s\" in a call for source \"%s\"",
						   text_to_cstring(own), text_to_cstring(source->name)),
					errhint("Leave its source NULL, or make one call for each source.")));
}

static void
deform(HeapTupleHeader row, TupleDesc desc, Datum *values, bool *isnull)
{
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(row), .t_data = row};

	ItemPointerSetInvalid(&tuple.t_self);
	heap_deform_tuple(&tuple, desc, values, isnull);
}

static void
read_row(inbox_message *message, TupleDesc desc, const inbox_source *source,
		 inbox_message_context *context)
{
	Datum values[INBOX_MESSAGE_COLUMNS];
	bool isnull[INBOX_MESSAGE_COLUMNS];

	deform(message->row, desc, values, isnull);
	if (!isnull[INBOX_MESSAGE_KEY])
		message->key = DatumGetTextPP(values[INBOX_MESSAGE_KEY]);
	inbox_message_check_key(message->key);
	context->key = message->key;
	message->payload.type = BYTEAOID;
	message->payload.isnull = isnull[INBOX_MESSAGE_PAYLOAD];
	if (!message->payload.isnull)
		message->payload.value = PointerGetDatum(DatumGetByteaPP(values[INBOX_MESSAGE_PAYLOAD]));
	if (!isnull[INBOX_MESSAGE_ORDERING_KEY])
		message->ordering_key = DatumGetTextPP(values[INBOX_MESSAGE_ORDERING_KEY]);
	message->published = !isnull[INBOX_MESSAGE_PUBLISH_TIME];
	message->publish_time = DatumGetTimestampTz(values[INBOX_MESSAGE_PUBLISH_TIME]);
	if (!isnull[INBOX_MESSAGE_SOURCE])
		check_source(DatumGetTextPP(values[INBOX_MESSAGE_SOURCE]), source);
}

void
inbox_message_one(const inbox_home *home, Datum row, const inbox_source *source,
				  inbox_message *message)
{
	TupleDesc desc = lookup_rowtype_tupdesc(home->message, -1);
	inbox_message_context context;

	inbox_message_entered(&context, message->ordinal, NULL);
	message->row = DatumGetHeapTupleHeader(row);
	read_row(message, desc, source, &context);
	inbox_message_left(&context);
	ReleaseTupleDesc(desc);
}

static void
refuse_null_element(int ordinal)
{
	ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					errmsg("message %d of the array is NULL", ordinal),
					errcontext("inbox: {\"ordinal\":%d,\"key\":null}", ordinal)));
}

inbox_message *
inbox_message_array(const inbox_home *home, Datum array, const inbox_source *source, int *count)
{
	ArrayType *elements = DatumGetArrayTypeP(array);
	inbox_message *messages;
	Datum *values;
	bool *nulls;

	if (ARR_NDIM(elements) > 1)
		ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
						errmsg("messages must be a one-dimensional array, this one has %d",
							   ARR_NDIM(elements))));
	deconstruct_array(elements, home->message, -1, false, TYPALIGN_DOUBLE, &values, &nulls, count);
	messages = palloc0(sizeof(inbox_message) * *count);
	for (int i = 0; i < *count; i++)
	{
		messages[i].ordinal = i + 1;
		if (nulls[i])
			refuse_null_element(i + 1);
		inbox_message_one(home, values[i], source, &messages[i]);
	}
	return messages;
}

void
inbox_message_hash(inbox_message *messages, int count)
{
	/* Made and freed in one call: its resource owner ends with the transaction. */
	pg_cryptohash_ctx *sha256 = pg_cryptohash_create(PG_SHA256);

	for (int i = 0; i < count; i++)
	{
		inbox_message *message = &messages[i];

		message->hashed = !message->payload.isnull;
		if (message->hashed)
			message->hash = inbox_payload_hash(&message->payload, sha256);
	}
	pg_cryptohash_free(sha256);
}

/* ---- as a value of the type inbox_message ----------------------------------------------- */

Datum
inbox_message_row(const inbox_home *home, const inbox_message *message, const inbox_source *source)
{
	TupleDesc desc = lookup_rowtype_tupdesc(home->message, -1);
	Datum values[INBOX_MESSAGE_COLUMNS];
	bool isnull[INBOX_MESSAGE_COLUMNS];
	Datum row;

	memset(isnull, true, sizeof(isnull));
	if (message->row != NULL)
		deform(message->row, desc, values, isnull);
	values[INBOX_MESSAGE_KEY] = PointerGetDatum(message->key);
	isnull[INBOX_MESSAGE_KEY] = false;
	isnull[INBOX_MESSAGE_PAYLOAD] = message->payload.isnull;
	if (!message->payload.isnull)
		values[INBOX_MESSAGE_PAYLOAD] = inbox_payload_convert(&message->payload, BYTEAOID);
	values[INBOX_MESSAGE_SOURCE] = PointerGetDatum(source->name);
	isnull[INBOX_MESSAGE_SOURCE] = false;
	row = HeapTupleGetDatum(heap_form_tuple(desc, values, isnull));
	ReleaseTupleDesc(desc);
	return row;
}
