/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_DELIVERY_H
#define PUBSUB_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ackid.h"

struct entry;
struct subscription;

/* What became of an acknowledgement or an extension. */
enum verdict
{
	VERDICT_DONE,
	VERDICT_STALE,	   /* expired, superseded or done before */
	VERDICT_UNORDERED, /* exactly-once: an earlier message of the key is not acknowledged yet */
	VERDICT_FOREIGN	   /* not an ack id of this subscription */
};

const char *verdict_name(enum verdict verdict);

/* Leases the entry for that long and writes its ack id. */
void delivery_lease(struct entry *entry, int64_t nanoseconds, char ack_id[ACKID_LEN + 1]);

/* The entry to deliver after this one to the same pull, of the same ordering key; or NULL. */
struct entry *delivery_next_of_run(const struct entry *entry);

/* Finds what an ack id stands for. *entry is NULL if the verdict is not VERDICT_DONE. */
enum verdict delivery_find(struct subscription *subscription, const char *ack_id, size_t len,
						   struct entry **entry);

enum verdict delivery_ack(struct entry *entry);

/* Sets the end of the lease to that many seconds from now; 0 gives the message back. */
enum verdict delivery_modify(struct entry *entry, int64_t seconds);

/* The lease ended without an acknowledgement. */
void delivery_expire(struct entry *entry);

/* The backoff is over. */
void delivery_resume(struct entry *entry);

/* Makes the entry deliverable again as if nothing had happened to it; no failure is counted. */
void delivery_repeat(struct entry *entry);

#endif
