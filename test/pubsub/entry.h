/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_ENTRY_H
#define PUBSUB_ENTRY_H

#include <stdint.h>

#include "list.h"
#include "timer.h"

struct message;
struct order;
struct subscription;

enum entry_state
{
	ENTRY_WAITING, /* behind an earlier message of its ordering key */
	ENTRY_READY,
	ENTRY_LEASED,
	ENTRY_BACKOFF, /* failed, and held back by the retry policy */
	ENTRY_ACKED,   /* kept for a seek, or until an earlier one of its ordering key is acked too */
	ENTRY_STATES
};

/* One message in one subscription. */
struct entry
{
	struct subscription *subscription;
	struct message *message;
	uint64_t position;
	uint64_t lease; /* number of the last delivery; 0: none, or one that no longer counts */
	enum entry_state state;
	int failures; /* nacks and expired leases */
	struct link ready;
	struct timer timer;	 /* the end of the lease or of the backoff */
	struct order *order; /* NULL: without ordering key, or no longer in its way */
	struct link in_order;
};

/* The only way to change a state. The time counts for leased and backoff. */
void entry_set_state(struct entry *entry, enum entry_state state, int64_t until);

#endif
