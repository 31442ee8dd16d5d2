/* SPDX-License-Identifier: PostgreSQL */
/* What the answer to a worker's transaction means for its messages. */
#ifndef INBOX_ANSWER_H
#define INBOX_ANSWER_H

#include "puller.h"

void answer_take(struct worker *worker, const struct db_answer *answer);

#endif
