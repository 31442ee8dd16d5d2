/* SPDX-License-Identifier: PostgreSQL */
/*
 * One lane per ordering key of which messages are held. Messages of a lane run on one connection
 * at a time, in the order of their arrival.
 */
#ifndef INBOX_LANE_H
#define INBOX_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "message.h"

struct lane
{
	char *ordering_key;
	size_t held;		/* messages of the lane on any list */
	const void *runner; /* the connection that runs its messages; NULL: none */
	size_t running;		/* how many of them it runs */
	uint64_t gap;		/* where the first is that is committed and comes again; 0: none */
};

/* Gives a message that has an ordering key its lane. */
void lane_enter(struct lanes *lanes, struct message *message);

/* Takes it off again, before it is freed; the last one frees the lane. */
void lane_leave(struct lanes *lanes, struct message *message);

/* True when "runner" may start this message now. Always true without an ordering key. */
bool lane_may_run(const struct message *message, const void *runner);

/* Notes that the message starts to run, or has ceased to. */
void lane_start(struct message *message, const void *runner);
void lane_stop(struct message *message);

/* Notes that the message is committed, and comes again all the same. */
void lane_note_gap(struct message *message);

#endif
