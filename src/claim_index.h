/* SPDX-License-Identifier: PostgreSQL */
/*
 * Claims found by their key.
 */
#ifndef INBOX_CLAIM_INDEX_H
#define INBOX_CLAIM_INDEX_H

#include "postgres.h"

#include "access/genam.h"
#include "access/skey.h"
#include "executor/tuptable.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "home.h"

/* The columns of inbox_claim. */
enum
{
	CLAIM_SOURCE_ID = 1,
	CLAIM_KEY,
	CLAIM_PAYLOAD_HASH,
	CLAIM_PUBLISH_TIME,
	CLAIM_CLAIMED_AT,
	CLAIM_COLUMNS = CLAIM_CLAIMED_AT
};

typedef struct inbox_claim_reader
{
	Relation table;
	Relation index;
	IndexScanDesc scan;
	TupleTableSlot *slot;
	ScanKeyData keys[2];
} inbox_claim_reader;

/*
 * Opens table and primary key for reading and writing; an error where the key is not the one that
 * the table was created with. The snapshot has to outlive the reader.
 */
extern void inbox_claim_reader_open(inbox_claim_reader *reader, const inbox_home *home,
									int32 source_id, Snapshot snapshot);

/* Whether the key has a claim, and its hash. The row stays in the slot until the next call. */
extern bool inbox_claim_read(inbox_claim_reader *reader, const text *key, bool *hashed,
							 int64 *hash);

extern void inbox_claim_reader_close(inbox_claim_reader *reader);

#endif
