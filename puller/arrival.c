/* SPDX-License-Identifier: PostgreSQL */
#include "arrival.h"

#include <string.h>

#include "lane.h"
#include "lease.h"

/*
 * Behind one that has lost its lease everything comes again, and in order: what waits of it here
 * would only give its place to a message that comes behind the lost one.
 */
static void
drop_ended(struct message_board *board, const struct message *again)
{
	struct message *message;
	struct message *next;
	bool ended = false;

	for (message = TAILQ_FIRST(&board->list[MESSAGE_READY]); message != NULL; message = next)
	{
		next = TAILQ_NEXT(message, link);
		if (message->lane != again->lane || message == again)
		{
			continue;
		}
		ended |= message->lease_end == 0;
		if (ended)
		{
			message_forget(board, message);
		}
	}
}

/*
 * A message that waits here comes again: its lease was lost, or the service gave it out twice. At
 * the end of its lane it would be behind what must follow it, so it takes the place it had.
 */
static void
keep_place(struct puller *puller, struct message *again)
{
	struct message *message;

	TAILQ_FOREACH(message, &puller->board.list[MESSAGE_READY], link)
	{
		if (message->lane == again->lane && message != again &&
			strcmp(message->message_id, again->message_id) == 0)
		{
#ifndef INBOX_WITHOUT_KEPT_PLACE
			message_replace(&puller->board, message, again);
#else
			message_forget(&puller->board, message);
#endif
			return;
		}
	}
}

static void
note_size(struct pull_state *pull, size_t size)
{
	pull->average_size += ((double) size - pull->average_size) / 16;
	/* A large message counts at once, small ones bring the average down slowly. */
	if ((double) size > pull->average_size * 4)
	{
		pull->average_size = (double) size / 2;
	}
}

void
arrival_hold(struct puller *puller, struct message *message, int64_t lease_start)
{
	if (puller->board.held == 0)
	{
		puller->progress_ms = lease_start;
	}
	message_hold(&puller->board, message);
	lease_begin(&puller->lease, message, lease_start, puller->pull.deadline_ms);
	note_size(&puller->pull, message->size);
	puller->metrics.pulled++;
	message->label = label_of(&puller->metrics.label, message->attributes);
	/* Where it is alone in its lane, there is nothing to look for among all that is ready. */
	if (message->lane != NULL && message->lane->held > 1)
	{
		drop_ended(&puller->board, message);
		keep_place(puller, message);
	}
	if (puller->stopping)
	{
		lease_return(&puller->lease, message, 0);
	}
}
