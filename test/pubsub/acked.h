/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_ACKED_H
#define PUBSUB_ACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"

struct acked
{
	char *key;
	uint64_t message;
	char *subscription;
	bool found;
};

/* What was acknowledged together, and is looked up together. All zero is an empty one. */
struct acked_batch
{
	struct link link;
	struct acked *acked;
	size_t count;
	size_t room;
	size_t hint;	  /* where the next key that comes back probably is */
	char flushed[32]; /* the primary's position in its write-ahead log after it */
};

/* Adds copies. */
void acked_add(struct acked_batch *batch, const char *key, uint64_t message,
			   const char *subscription);

/* A text[] of the keys, or of the message ids, in PostgreSQL's notation; owned by the caller. */
char *acked_keys(const struct acked_batch *batch);
char *acked_messages(const struct acked_batch *batch);

/* Marks one of that key as found; forgets what is marked. */
void acked_find(struct acked_batch *batch, const char *key);
void acked_forget(struct acked_batch *batch);
void acked_free(struct acked_batch *batch);

#endif
