/* SPDX-License-Identifier: PostgreSQL */
/*
 * The ways a message leaves a worker: to be acknowledged, given back with what must not overtake
 * it, or back among those that wait.
 */
#ifndef INBOX_SETTLE_H
#define INBOX_SETTLE_H

#include "puller.h"

/* Its verdict is durable. The message must be out of the worker's batch, or its run end next. */
void settle_acknowledge(struct worker *worker, struct message *message);

/*
 * Gives a message back for "pause_ms", and with it what this batch holds and what waits of its
 * key and, behind it, of its ordering key.
 */
void settle_return(struct worker *worker, struct message *message, int64_t pause_ms);

/* As settle_return(), for one that was given back already: what must not overtake it follows. */
void settle_followers(struct worker *worker, const struct message *message, int64_t pause_ms);

/* Everything the worker has taken and not settled waits again, in its old order. */
void settle_release(struct worker *worker);

/* The failure the worker was to record is done with. */
void settle_failure(struct worker *worker);

/* The transaction failed by nobody's fault: it is sent again after a growing pause. */
void settle_pause(struct worker *worker, const struct db_answer *answer);

/* Ends the worker's batch, if it has one. */
void settle_batch(struct worker *worker);

#endif
