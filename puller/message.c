/* SPDX-License-Identifier: PostgreSQL */
#include "message.h"

#include <stdio.h>
#include <stdlib.h>

#include "lane.h"
#include "memory.h"

/* step_allowed[from][to] */
static const bool step_allowed[MESSAGE_STATES][MESSAGE_STATES] = {
	[MESSAGE_READY] = {[MESSAGE_RUNNING] = true, [MESSAGE_RETURNING] = true},
	[MESSAGE_RUNNING] =
		{[MESSAGE_READY] = true, [MESSAGE_COMMITTED] = true, [MESSAGE_RETURNING] = true},
	[MESSAGE_COMMITTED] = {[MESSAGE_ACKING] = true},
};

struct message *
message_new(void)
{
	struct message *message = memory_new(sizeof(*message));

	message->publish_time = INT64_MIN;
	return message;
}

void
message_free(struct message *message)
{
	free(message->ack_id);
	free(message->message_id);
	free(message->ordering_key);
	free(message->key);
	free(message->attributes);
	free(message->data);
	free(message->defect_detail);
	free(message->envelope);
	free(message);
}

void
message_board_init(struct message_board *board)
{
	*board = (struct message_board){0};
	for (int state = 0; state < MESSAGE_STATES; state++)
	{
		TAILQ_INIT(&board->list[state]);
	}
}

/* What comes back is older than what waits, so its place is near the head. */
static void
insert_in_order(struct message_list *list, struct message *message)
{
	struct message *later = TAILQ_FIRST(list);

	while (later != NULL && later->sequence < message->sequence)
	{
		later = TAILQ_NEXT(later, link);
	}
	if (later != NULL)
	{
		TAILQ_INSERT_BEFORE(later, message, link);
	}
	else
	{
		TAILQ_INSERT_TAIL(list, message, link);
	}
}

static void
enter_list(struct message_board *board, struct message *message, enum message_state state)
{
	message->state = state;
	board->count[state]++;
	if (state == MESSAGE_READY)
	{
		insert_in_order(&board->list[state], message);
	}
	else
	{
		TAILQ_INSERT_TAIL(&board->list[state], message, link);
	}
}

static void
leave_list(struct message_board *board, struct message *message)
{
	if (message->state == MESSAGE_RUNNING)
	{
		lane_stop(message);
	}
	TAILQ_REMOVE(&board->list[message->state], message, link);
	board->count[message->state]--;
}

void
message_hold(struct message_board *board, struct message *message)
{
	board->held++;
	board->held_bytes += message->size;
	board->count[MESSAGE_READY]++;
	message->sequence = ++board->arrived;
	message->state = MESSAGE_READY;
	TAILQ_INSERT_TAIL(&board->list[MESSAGE_READY], message, link);
	lane_enter(&board->lanes, message);
}

void
message_set_state(struct message_board *board, struct message *message, enum message_state state)
{
	if (!step_allowed[message->state][state])
	{
		fprintf(stderr, "inbox-puller: internal error: message %s from state %d to %d\n",
				message->message_id, (int) message->state, (int) state);
		abort();
	}
	leave_list(board, message);
	enter_list(board, message, state);
}

void
message_run(struct message_board *board, struct message *message, const void *runner)
{
	message_set_state(board, message, MESSAGE_RUNNING);
	lane_start(message, runner);
}

void
message_replace(struct message_board *board, struct message *message, struct message *again)
{
	again->sequence = message->sequence;
	again->blames = message->blames;
	again->losses = message->losses;
	again->suspect = message->suspect;
	again->noted = message->noted;
	TAILQ_REMOVE(&board->list[MESSAGE_READY], again, link);
	TAILQ_INSERT_BEFORE(message, again, link);
	message_forget(board, message);
}

void
message_end_lease(struct message *message)
{
	message->lease_end = 0;
	message->lease_request = 0;
}

void
message_end_lane(struct message_board *board, const struct message *message)
{
	struct message *behind;

	if (message->lane == NULL)
	{
		return;
	}
	TAILQ_FOREACH(behind, &board->list[MESSAGE_READY], link)
	{
		if (behind->lane == message->lane && behind->sequence > message->sequence)
		{
			message_end_lease(behind);
		}
	}
}

void
message_end_gaps(struct message_board *board)
{
	struct message *message;

	TAILQ_FOREACH(message, &board->list[MESSAGE_READY], link)
	{
		const struct lane *lane = message->lane;

		if (lane != NULL && lane->gap != 0 && lane->gap < message->sequence)
		{
			message_end_lease(message);
		}
	}
}

void
message_forget(struct message_board *board, struct message *message)
{
	leave_list(board, message);
	lane_leave(&board->lanes, message);
	board->held--;
	board->held_bytes -= message->size;
	message_free(message);
}

const char *
message_defect_name(enum message_defect defect)
{
	switch (defect)
	{
		case DEFECT_NONE:
			return "none";
		case DEFECT_NO_KEY:
			return "no_key";
		case DEFECT_UNSTORABLE:
			return "unstorable";
		case DEFECT_UNDECODABLE:
			return "undecodable";
	}
	return "none";
}
