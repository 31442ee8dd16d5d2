/* SPDX-License-Identifier: PostgreSQL */
/* What the answer of inbox_fail() means for the message whose failure was to be recorded. */
#ifndef INBOX_RECORDING_H
#define INBOX_RECORDING_H

#include "puller.h"

void recording_answered(struct worker *worker, const struct db_answer *answer);

#endif
