/* SPDX-License-Identifier: PostgreSQL */
/*
 * The scope in which a key is unique: its row in inbox_source.
 */
#ifndef INBOX_SOURCE_H
#define INBOX_SOURCE_H

#include "postgres.h"

#include "datatype/timestamp.h"

#include "home.h"

typedef struct inbox_source
{
	int32 id;
	text *name;
	int64 lock_key; /* of the advisory lock of its lock group */
	bool compares;	/* the same key with another payload is a conflict */
	bool parks;		/* messages behind a dead letter of their ordering key wait for it */
	bool troubled;	/* failed since the last success that was noted, or halted */
	bool holding;	/* has messages that others may have to wait for */
	bool forgetful; /* purged_before is set */
	TimestampTz purged_before;
} inbox_source;

/*
 * Reads the source, which is created at its first use. Never remembered from call to call: the
 * transaction that created it may be rolled back, and its settings may change.
 */
extern void inbox_source_read(const inbox_home *home, text *name, inbox_source *source);

/*
 * Waits for the lock that everything that runs a handler holds, shared, until it commits; reads the
 * source again if there was somebody to wait for.
 */
extern void inbox_source_lock(const inbox_home *home, inbox_source *source);

/* Notes a success, which ends a halt; waits for nobody. */
extern void inbox_source_applied(const inbox_home *home, const inbox_source *source);

#endif
