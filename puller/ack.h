/* SPDX-License-Identifier: PostgreSQL */
/*
 * Acknowledgements: the only place that sends one. It is fed by ack_add() alone, which takes
 * nothing but messages whose verdict is durable.
 *
 * An acknowledgement that fails is no fault: the message comes again and is a duplicate. It is
 * retried while the lease can still run, counted, and never fatal.
 */
#ifndef INBOX_ACK_H
#define INBOX_ACK_H

#include <stdbool.h>
#include <stdint.h>

#include "backoff.h"
#include "message.h"
#include "pubsub.h"

struct ack
{
	struct message_board *board;
	struct pubsub *pubsub;
	struct backoff backoff;
	int64_t not_before;		  /* after a failure */
	unsigned last_request;	  /* numbers requests, from 1 */
	unsigned in_flight;		  /* requests */
	unsigned ordered_request; /* the one that carries messages with an ordering key; 0: none */
	size_t waiting;			  /* messages in no request */
	size_t ordered;			  /* of them those that have an ordering key */
	uint64_t acked;
	uint64_t lost;	  /* given up; these come again */
	uint64_t retried; /* refused for now, and sent again */
};

void ack_init(struct ack *ack, struct message_board *board, struct pubsub *pubsub);

/* Takes a message in MESSAGE_COMMITTED. */
void ack_add(struct ack *ack, struct message *message);

/*
 * Forgets what has not been sent, and what has been is not sent again: it was committed where it
 * may be missing now. All of it comes again, as does what was given up before; what is behind that
 * in its ordering key is given up as well, since it would be applied before.
 */
void ack_drop(struct ack *ack);

/* Sends what is due. */
void ack_step(struct ack *ack, int64_t now);

/* When ack_step() has something to do next. */
int64_t ack_deadline(const struct ack *ack);

/* True when nothing waits and nothing is under way. */
bool ack_is_idle(const struct ack *ack);

#endif
