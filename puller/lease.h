/* SPDX-License-Identifier: PostgreSQL */
/*
 * Leases: extended for every message that is held, whatever it waits for, and ended on purpose
 * for messages that are given back.
 *
 * A lease starts at the first byte of the pull's response, less a second, with the subscription's
 * deadline, and is first extended after a third of that; then by 60 s each time, at half-life, so
 * that one lost request does not cost it. --max-lease ends it for good.
 */
#ifndef INBOX_LEASE_H
#define INBOX_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "message.h"
#include "pubsub.h"

/* What an extension asks for. The statement timeout is shorter than this. */
#define LEASE_EXTENSION_MS 60000

struct lease
{
	struct message_board *board;
	struct pubsub *pubsub;
	const struct config *config;
	int64_t next_due;	   /* no message is due earlier */
	unsigned last_request; /* numbers requests, from 1 */
	int64_t returned_ms;   /* when one that gives messages back was answered last */
	bool given_back;	   /* messages wait to be given back */
	uint64_t extended;
	uint64_t expired;
};

void lease_init(struct lease *lease, struct message_board *board, struct pubsub *pubsub,
				const struct config *config);

/* A message that was just held: its lease began at "start" and lasts "deadline_ms". */
void lease_begin(struct lease *lease, struct message *message, int64_t start, int64_t deadline_ms);

/*
 * Gives a message back: it is delivered again after "pause_ms" (at most 600 s), and forgotten
 * here. A bare zero at once would make a failing message come back in a hot loop.
 */
void lease_return(struct lease *lease, struct message *message, int64_t pause_ms);

/* Sends extensions and returns that are due, and forgets messages whose lease has ended. */
void lease_step(struct lease *lease, int64_t now);

int64_t lease_deadline(const struct lease *lease);

/* True when every message given back has been answered for. */
bool lease_is_idle(const struct lease *lease);

#endif
