/* SPDX-License-Identifier: PostgreSQL */
/*
 * Claims: which of a call's messages are new, and what the others are. No verdict follows from
 * rows not inserted: only from a row that was read.
 */
#include "compat.h"

#include "utils/snapmgr.h"

#include "claim.h"
#include "claim_index.h"
#include "fault_point.h"
#include "promise.h"

/* ---- by key ----------------------------------------------------------------------------- */

int
inbox_key_compare(const text *a, const text *b)
{
	size_t a_size = VARSIZE_ANY_EXHDR(a);
	size_t b_size = VARSIZE_ANY_EXHDR(b);
	int order = memcmp(VARDATA_ANY(a), VARDATA_ANY(b), Min(a_size, b_size));

	if (order != 0 || a_size == b_size)
		return order;
	return a_size < b_size ? -1 : 1;
}

static int
compare_messages(const void *a, const void *b)
{
	const inbox_message *left = *(inbox_message *const *) a;
	const inbox_message *right = *(inbox_message *const *) b;
	int order = inbox_key_compare(left->key, right->key);

	return order != 0 ? order : left->ordinal - right->ordinal;
}

#ifdef INBOX_WITHOUT_SORTED_CLAIMS
static int
compare_ordinals(const void *a, const void *b)
{
	return (*(inbox_message *const *) a)->ordinal - (*(inbox_message *const *) b)->ordinal;
}
#endif

void
inbox_claims_open(inbox_claims *claims, inbox_message *messages, int count)
{
	claims->count = count;
	claims->sorted = palloc(sizeof(inbox_message *) * (count + 1));
	claims->open = palloc(sizeof(inbox_message *) * (count + 1));
	for (int i = 0; i < count; i++)
		claims->sorted[i] = &messages[i];
	qsort(claims->sorted, count, sizeof(inbox_message *), compare_messages);
	inbox_claims_reopen(claims);
#ifdef INBOX_WITHOUT_SORTED_CLAIMS
	qsort(claims->open, claims->opened, sizeof(inbox_message *), compare_ordinals);
#endif
}

void
inbox_claims_drop_decided(inbox_claims *claims)
{
	int kept = 0;

	for (int i = 0; i < claims->opened; i++)
	{
		if (claims->open[i]->verdict == INBOX_NEW)
			claims->open[kept++] = claims->open[i];
	}
	claims->opened = kept;
}

void
inbox_claims_reopen(inbox_claims *claims)
{
	inbox_message **sorted = claims->sorted;

	claims->opened = 0;
	for (int i = 0; i < claims->count; i++)
	{
		if (sorted[i]->verdict == INBOX_NEW &&
			(i == 0 || inbox_key_compare(sorted[i - 1]->key, sorted[i]->key) != 0))
			claims->open[claims->opened++] = sorted[i];
	}
}

const inbox_message *
inbox_claims_first(const inbox_claims *claims, const text *key)
{
	int low = 0;
	int high = claims->count;

	while (low < high)
	{
		int middle = (low + high) / 2;

		if (inbox_key_compare(claims->sorted[middle]->key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < claims->count && inbox_key_compare(claims->sorted[low]->key, key) == 0)
		return claims->sorted[low];
	return NULL;
}

/* ---- verdicts --------------------------------------------------------------------------- */

void
inbox_claim_settle(const inbox_source *source, inbox_message *message, bool hashed, int64 hash)
{
	bool comparable =
		source->compares && hashed && message->hashed && ((hash ^ message->hash) & 1) == 0;

	message->verdict = comparable && hash != message->hash ? INBOX_CONFLICT : INBOX_DUPLICATE;
	message->hash_claimed = hashed;
	message->claimed_hash = hash;
	FAULT_POINT("duplicate");
	inbox_promise(true);
}

void
inbox_claims_followers(const inbox_source *source, const inbox_claims *claims)
{
	inbox_message *first = NULL;

	for (int i = 0; i < claims->count; i++)
	{
		inbox_message *message = claims->sorted[i];

		if (first == NULL || inbox_key_compare(first->key, message->key) != 0)
			first = message;
		else if (first->verdict == INBOX_NEW)
			inbox_claim_settle(source, message, first->hashed, first->hash);
		else if (first->verdict == INBOX_DUPLICATE || first->verdict == INBOX_CONFLICT)
			inbox_claim_settle(source, message, first->hash_claimed, first->claimed_hash);
		else
			message->verdict = first->verdict;
	}
}

/* ---- finding and claiming ----------------------------------------------------------------- */

/* Of the transaction where that has only one: what it cannot see is for INSERT to refuse. */
static Snapshot
snapshot_of_claims(void)
{
#ifdef INBOX_WITHOUT_TRANSACTION_SNAPSHOT
	return GetLatestSnapshot();
#else
	return GetTransactionSnapshot();
#endif
}

int
inbox_claims_settle(const inbox_home *home, const inbox_source *source, inbox_message **open, int n)
{
	Snapshot snapshot = RegisterSnapshot(snapshot_of_claims());
	inbox_claim_reader reader;
	int kept = 0;

	inbox_claim_reader_open(&reader, home, source->id, snapshot);
	for (int i = 0; i < n; i++)
	{
		bool hashed;
		int64 hash;

		if (inbox_claim_read(&reader, open[i]->key, &hashed, &hash))
			inbox_claim_settle(source, open[i], hashed, hash);
		else
			open[kept++] = open[i];
	}
	inbox_claim_reader_close(&reader);
	UnregisterSnapshot(snapshot);
	return kept;
}

void
inbox_claims_find(const inbox_home *home, const inbox_source *source, inbox_claims *claims)
{
	claims->opened = inbox_claims_settle(home, source, claims->open, claims->opened);
}

void
inbox_claims_insert(const inbox_home *home, const inbox_source *source, const inbox_claims *claims)
{
	inbox_promise(false);
	if (claims->opened > 0 && !inbox_claim_write(home, source, claims->open, claims->opened))
		inbox_claim_insert(home, source, claims->open, claims->opened);
}
