/* SPDX-License-Identifier: PostgreSQL */
/*
 * The messages one connection has taken, and the runs they are still to be tried in. Pure.
 *
 * A batch starts as one run. A run that fails is cut: before, alone and behind the message that
 * the error names, or into halves when it names none. Only a message that failed alone is blamed.
 */
#ifndef INBOX_BATCH_H
#define INBOX_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "message.h"

struct batch;

/* Takes over a copy of the array; at least one message. */
struct batch *batch_new(struct message *const *messages, size_t count);
void batch_free(struct batch *batch);

/*
 * The run to try next: its messages, in order, without those that left. Zero when the batch is
 * over. The array is valid until the next call on the batch.
 */
size_t batch_run(struct batch *batch, struct message ***messages);

/* The run has been dealt with. */
void batch_finish_run(struct batch *batch);

/* Cuts the run around its message number "place" (from 0, as batch_run() gave them). */
void batch_cut(struct batch *batch, size_t place);

/* Cuts the run into halves. */
void batch_halve(struct batch *batch);

/* A message leaves this batch for good. */
void batch_remove(struct batch *batch, const struct message *message);

/* Every message that has not left and not been dealt with, in order; as batch_run(). */
size_t batch_rest(struct batch *batch, struct message ***messages);

#endif
