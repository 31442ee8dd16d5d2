/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_HISTORY_H
#define PUBSUB_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entry;
struct history;
struct message;
struct subscription;

/*
 * The append-only record of what happened, one JSON object a line, numbered without a gap from 1
 * by "seq". It is on the file before the client sees the answer that the lines are about. All
 * functions do nothing on a history that is NULL.
 */

/* NULL, with a message on standard error, if the file cannot be made. */
struct history *history_open(const char *path);
const char *history_path(const struct history *history);

/* The source is the subscription a dead letter comes from, NULL for a publisher's message. */
void history_publish(struct history *history, const char *topic, const struct message *message,
					 const struct subscription *source);
void history_deliver(struct history *history, const struct entry *entry, const char *ack_id,
					 int64_t lease);

/*
 * An acknowledgement or extension (seconds >= 0), after it was decided. The message is NULL where
 * the ack id does not lead to one any more.
 */
void history_answer(struct history *history, const struct subscription *subscription,
					const char *ack_id, size_t len, uint64_t message, int64_t seconds,
					const char *outcome);

/* Something that happened to an entry without a client: expire, ack-undone, repeat. */
void history_entry(struct history *history, const char *event, const struct entry *entry);

/* A fault that was done: the number of its rule, the event it was done to and how often before. */
void history_fault(struct history *history, size_t rule, const char *action, const char *event,
				   uint64_t occurrence);

/* An acknowledged key that a database does not have ("lost"), or has ("found"). */
void history_lookup(struct history *history, const char *database, const char *outcome,
					const char *subscription, const char *key, uint64_t message);
void history_flush(struct history *history);
void history_close(struct history *history);

#endif
