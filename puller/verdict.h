/* SPDX-License-Identifier: PostgreSQL */
/* Reads the verdicts of a committed transaction, counts them and writes their events. */
#ifndef INBOX_VERDICT_H
#define INBOX_VERDICT_H

#include "puller.h"

/* How long a message rests whose ordering key waits for an earlier message. */
#define VERDICT_LATER_PAUSE_MS 10000

enum verdict
{
	VERDICT_DURABLE, /* to be acknowledged */
	VERDICT_LATER,	 /* an earlier message of its ordering key is being retried */
	VERDICT_NONE	 /* the server gave none: never acknowledged; already logged */
};

/* The verdict of the message at "place" (from 0) of the run. */
enum verdict verdict_of(struct puller *puller, const struct message *message, const PGresult *rows,
						size_t place);

struct verdict_of_failure
{
	bool durable;	  /* dead, a duplicate or a conflict: to be acknowledged */
	bool halted;	  /* the source is: nothing was counted */
	int64_t pause_ms; /* else: when it is to come again */
};

/* What inbox_fail() answered about that failure of the message. */
struct verdict_of_failure verdict_of_failure(struct puller *puller, const struct message *message,
											 const struct failure *failure, const PGresult *rows);

#endif
