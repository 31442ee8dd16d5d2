/* SPDX-License-Identifier: PostgreSQL */
/*
 * The row that records a key.
 */
#ifndef INBOX_CLAIM_H
#define INBOX_CLAIM_H

#include "postgres.h"

#include "home.h"
#include "message.h"
#include "source.h"

/* The messages of a call, by key. */
typedef struct inbox_claims
{
	inbox_message **sorted;
	int count;
	inbox_message **open; /* one for each key that has no verdict yet, sorted */
	int opened;
} inbox_claims;

/* Sorts the messages; lives in the current memory context. */
extern void inbox_claims_open(inbox_claims *claims, inbox_message *messages, int count);

/*
 * Decides the open keys that have a claim: INBOX_DUPLICATE or INBOX_CONFLICT, by the row that was
 * read.
 */
extern void inbox_claims_find(const inbox_home *home, const inbox_source *source,
							  inbox_claims *claims);

/*
 * Claims the keys that are open. Their messages stay INBOX_NEW where this call inserted the claim;
 * where another transaction was faster, which may have to be waited for, they are decided as in
 * inbox_claims_find.
 */
extern void inbox_claims_insert(const inbox_home *home, const inbox_source *source,
								const inbox_claims *claims);

/* As memcmp, a shorter key before the longer ones it begins. */
extern int inbox_key_compare(const text *a, const text *b);

/* The verdict of a message whose key has a claim with this hash, if it has one. */
extern void inbox_claim_settle(const inbox_source *source, inbox_message *message, bool hashed,
							   int64 hash);

/* Settles those of n open messages whose key has a visible claim; returns how many are left. */
extern int inbox_claims_settle(const inbox_home *home, const inbox_source *source,
							   inbox_message **open, int n);

/*
 * Two ways to claim the keys of n open messages, which the messages are decided by then, as
 * inbox_claims_insert says. The first writes to table and index itself, and returns false, having
 * done nothing, where the table is not as it was created; the second is an INSERT.
 */
extern bool inbox_claim_write(const inbox_home *home, const inbox_source *source,
							  inbox_message **open, int n);
extern void inbox_claim_insert(const inbox_home *home, const inbox_source *source,
							   inbox_message **open, int n);

/* Takes the messages that have got a verdict off the open ones. */
extern void inbox_claims_drop_decided(inbox_claims *claims);

/* The open ones once more, those that this call has claimed: claiming shuffles them. */
extern void inbox_claims_reopen(inbox_claims *claims);

/* The first message of the call with this key, or NULL. */
extern const inbox_message *inbox_claims_first(const inbox_claims *claims, const text *key);

/* Decides the further copies of each key by what became of the first one. */
extern void inbox_claims_followers(const inbox_source *source, const inbox_claims *claims);

#endif
