/* SPDX-License-Identifier: PostgreSQL */
/*
 * One message of a call, from the arguments to the verdict.
 */
#ifndef INBOX_MESSAGE_H
#define INBOX_MESSAGE_H

#include "postgres.h"

#include "access/htup.h"
#include "datatype/timestamp.h"

#include "home.h"
#include "payload.h"
#include "source.h"

typedef enum inbox_verdict
{
	INBOX_NEW, /* not decided yet */
	INBOX_APPLIED,
	INBOX_DUPLICATE,
	INBOX_CONFLICT,
	INBOX_PARKED,
	INBOX_LATER,
	INBOX_EXPIRED
} inbox_verdict;

typedef struct inbox_message
{
	int ordinal; /* in the call, from 1; 0 where the call has one message only */
	text *key;	 /* detoasted */
	inbox_payload payload;
	text *ordering_key; /* detoasted, or NULL */
	bool published;
	TimestampTz publish_time;
	HeapTupleHeader row; /* as an inbox_message, where it was given as one */
	bool hashed;
	int64 hash;
	inbox_verdict verdict;
	bool parks;		   /* its key is to be claimed, its handler not to be run */
	bool hash_claimed; /* of the claim that already has the key: its hash */
	int64 claimed_hash;
} inbox_message;

/* The columns of inbox_message. */
enum
{
	INBOX_MESSAGE_KEY,
	INBOX_MESSAGE_PAYLOAD,
	INBOX_MESSAGE_ATTRIBUTES,
	INBOX_MESSAGE_ORDERING_KEY,
	INBOX_MESSAGE_MESSAGE_ID,
	INBOX_MESSAGE_PUBLISH_TIME,
	INBOX_MESSAGE_DELIVERY_ATTEMPT,
	INBOX_MESSAGE_SOURCE,
	INBOX_MESSAGE_COLUMNS
};

/* The messages of an array of inbox_message, in its order. Sets *count. */
extern inbox_message *inbox_message_array(const inbox_home *home, Datum array,
										  const inbox_source *source, int *count);

/* One message, given as a value of the type inbox_message. */
extern void inbox_message_one(const inbox_home *home, Datum row, const inbox_source *source,
							  inbox_message *message);

/* IX002 unless the key can be one. NULL is allowed here to say that it is not allowed. */
extern void inbox_message_check_key(const text *key);

/* Fills in hash for every message that has a payload. */
extern void inbox_message_hash(inbox_message *messages, int count);

/* The message as a value of the type inbox_message, with the name of its source. */
extern Datum inbox_message_row(const inbox_home *home, const inbox_message *message,
							   const inbox_source *source);

/*
 * Names the message in the CONTEXT of every error until inbox_message_left: the caller of a batch
 * finds out that way which message failed. JSON, because a key may hold newlines and quotes.
 */
typedef struct inbox_message_context
{
	ErrorContextCallback callback;
	int ordinal;
	const text *key;
} inbox_message_context;

extern void inbox_message_entered(inbox_message_context *context, int ordinal, const text *key);
extern void inbox_message_left(const inbox_message_context *context);

#endif
