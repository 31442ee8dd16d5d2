/* SPDX-License-Identifier: PostgreSQL */
/* Why a message failed: from the server's error or from its own defect, to inbox_fail and log. */
#ifndef INBOX_FAILURE_H
#define INBOX_FAILURE_H

#include "log.h"
#include "puller.h"

void failure_of_answer(struct failure *failure, const struct db_answer *answer);
void failure_of_defect(struct failure *failure, const struct message *message);
/* A connection was lost while the message ran: recorded before it is tried again. */
void failure_of_suspect(struct failure *failure);
/* It was dead-lettered by Pub/Sub itself, as its attributes tell. */
void failure_of_native(struct failure *failure, const struct message *message);
void failure_free(struct failure *failure);

/* What came of it. */
struct failure_outcome
{
	const char *verdict; /* of inbox_fail(); NULL when it could not be recorded */
	int64_t attempt;	 /* of the handler; 0 when it has not run */
	int64_t pause_ms;	 /* until the message comes again; negative: it does not */
	const char *hint;	 /* or NULL */
};

/*
 * Writes an event with all that identifies the message. An error's detail is left to inbox_fail():
 * that of a constraint quotes the row, and with it the payload.
 */
void failure_log(const struct puller *puller, const struct message *message,
				 const struct failure *failure, enum log_level level, const char *event,
				 const struct failure_outcome *outcome);

#endif
