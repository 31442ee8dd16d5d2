/* SPDX-License-Identifier: PostgreSQL */
/* What a connection does with the messages it has taken: one transaction after the other. */
#ifndef INBOX_WORK_H
#define INBOX_WORK_H

#include "puller.h"

/* Takes messages in MESSAGE_READY; they are run from now on. */
void work_take(struct worker *worker, struct message *const *messages, size_t count);

/*
 * Takes one message that goes to inbox_fail() first: for good with a defect or as a native dead
 * letter; as a suspect it runs afterwards, alone and under the exclusive lock.
 */
void work_take_alone(struct worker *worker, struct message *message);

/* True when it runs a suspect. */
bool work_has_suspect(const struct worker *worker);

/* True when the worker has nothing to do. */
bool work_is_idle(const struct worker *worker);

/* True when its connection is idle and it may send a transaction now. */
bool work_may_start(const struct worker *worker, int64_t now);

/* Sends the next transaction of what it has taken, if its connection is idle and it may. */
void work_step(struct worker *worker, int64_t now);

/* Sends a statement that asks how the source stands; takes the text over. */
void work_look(struct worker *worker, char *sql, int64_t limit_ms);

/* Gives back what has not been sent yet; a transaction under way is left to end. */
void work_stop(struct worker *worker);

/* Frees what it holds; the messages are the board's. */
void work_free(struct worker *worker);

#endif
