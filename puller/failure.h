/* SPDX-License-Identifier: PostgreSQL */
/* Why a message failed: from the server's error or from its own defect, to inbox_fail and log. */
#ifndef INBOX_FAILURE_H
#define INBOX_FAILURE_H

#include "puller.h"

void failure_of_answer(struct failure *failure, const struct db_answer *answer);
void failure_of_defect(struct failure *failure, const struct message *message);
void failure_free(struct failure *failure);

/* Writes the event message_failed. */
void failure_log(const struct puller *puller, const struct message *message,
				 const struct failure *failure);

#endif
