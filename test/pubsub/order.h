/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_ORDER_H
#define PUBSUB_ORDER_H

#include <stdbool.h>

#include "list.h"

struct entry;
struct subscription;

/*
 * The messages of one ordering key that are not acknowledged for good, in publication order. Those
 * delivered are a run at its front: none follows to anybody while one of the run is outstanding.
 * If one fails, it and all behind it come again in order, those acknowledged meanwhile included:
 * an acknowledgement counts once all before it are acknowledged.
 */
struct order
{
	char *key;
	struct link entries;
};

/* Appends the entry to the order of its message's key. */
void order_append(struct entry *entry);

/* Takes the entry out of its order. */
void order_leave(struct entry *entry);

/* Whether nothing of its key is unacknowledged before the entry. */
bool order_is_head(const struct entry *entry);

/* Gives up the leases and acknowledgements of the entry and all behind it. */
void order_rewind(struct entry *entry);

/*
 * After any change: lets go of what is acknowledged at the front, and makes the head ready if it
 * waits. What is outstanding is always at the front, so a head that waits has nothing before it.
 */
void order_advance(struct order *order);

/* The orders of a subscription, by key. */
struct lh_table *order_table_new(void);
void order_table_free(struct lh_table *orders);

#endif
