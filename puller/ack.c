/* SPDX-License-Identifier: PostgreSQL */
#include "ack.h"

#include <stdlib.h>

#include "clock.h"
#include "fault_point.h"
#include "lane.h"
#include "log.h"
#include "memory.h"

/* While one request is under way, the next ones grow instead of following at once. */
#define REQUESTS_IN_FLIGHT 4

struct ack_request
{
	struct ack *ack;
	unsigned number;
	bool again; /* the answer has left some to be sent again */
	size_t limit;
	size_t bytes;
	size_t count;
	char *ids[PUBSUB_MAX_IDS]; /* of the messages; these stay until the answer */
};

void
ack_init(struct ack *ack, struct message_board *board, struct pubsub *pubsub)
{
	*ack = (struct ack){
		.board = board,
		.pubsub = pubsub,
		.backoff = {.first_ms = 100, .limit_ms = 10000},
	};
}

static void
wait_for_request(struct ack *ack, struct message *message)
{
	message->request = 0;
	ack->waiting++;
	ack->ordered += message->lane != NULL;
}

static void
cease_to_wait(struct ack *ack, const struct message *message)
{
	ack->waiting--;
	ack->ordered -= message->lane != NULL;
}

void
ack_add(struct ack *ack, struct message *message)
{
	(void) FAULT_POINT("ack-add");
	message_set_state(ack->board, message, MESSAGE_ACKING);
	message->request_max = 0;
	wait_for_request(ack, message);
}

void
ack_drop(struct ack *ack)
{
	struct message *message;
	struct message *next;

	for (message = TAILQ_FIRST(&ack->board->list[MESSAGE_ACKING]); message != NULL; message = next)
	{
		next = TAILQ_NEXT(message, link);
		lane_note_gap(message);
		if (message->request != 0)
		{
			message_end_lease(message); /* send_again() gives it up */
			continue;
		}
		cease_to_wait(ack, message);
		message_forget(ack->board, message);
	}
	message_end_gaps(ack->board);
}

bool
ack_is_idle(const struct ack *ack)
{
	return ack->waiting == 0 && ack->in_flight == 0;
}

static void
give_up(struct ack *ack, struct message *message)
{
	ack->lost++;
	log_event(LOG_INFO, "ack_lost", "message_id", LOG_TEXT, message->message_id, "key", LOG_TEXT,
			  message->key, "err", LOG_TEXT, "the message will come again and be a duplicate",
			  NULL);
	lane_note_gap(message);
	message_forget(ack->board, message);
}

/* Back to those that wait, unless its lease has ended: then the service has it again. */
static void
send_again(struct ack *ack, struct message *message, int64_t now)
{
	if (message->lease_end <= now)
	{
		give_up(ack, message);
		return;
	}
	ack->retried++;
	wait_for_request(ack, message);
}

/* A refusal that names no id: the request is cut into halves until the bad id stands alone. */
static void
cut_down(struct ack *ack, struct message *message, size_t count, int64_t now)
{
	if (count == 1)
	{
		give_up(ack, message);
		return;
	}
	message->request_max = (count + 1) / 2;
	send_again(ack, message, now);
}

static void
settle(struct ack *ack, struct message *message, struct ack_request *request,
	   const struct pubsub_answer *answer, int64_t now)
{
	switch (pubsub_id_result(answer, message->ack_id))
	{
		case PUBSUB_ID_DONE:
			ack->acked++;
			message_forget(ack->board, message);
			break;
		case PUBSUB_ID_AGAIN:
			request->again = true;
			send_again(ack, message, now);
			break;
		case PUBSUB_ID_INVALID:
			give_up(ack, message);
			break;
		case PUBSUB_ID_UNKNOWN:
			if (answer->outcome == PUBSUB_INVALID)
			{
				cut_down(ack, message, request->count, now);
			}
			else
			{
				request->again = true;
				send_again(ack, message, now);
			}
			break;
	}
}

/*
 * What the service could not do for now is paused for. A refused request is cut and sent again at
 * once, and an id that has expired is no reason to keep the others waiting: nothing is overloaded.
 */
static void
note_failure(struct ack *ack, const struct ack_request *request, const struct pubsub_answer *answer)
{
	int64_t pause = request->again ? backoff_next(&ack->backoff) : 0;

	if (request->again && answer->retry_after_ms > pause)
	{
		pause = answer->retry_after_ms;
	}
	ack->not_before = clock_ms() + pause;
	log_event(LOG_WARNING, "ack_failed", "outcome", LOG_TEXT, pubsub_outcome_name(answer->outcome),
			  "status", LOG_INT, (int64_t) answer->status, "ids", LOG_INT, (int64_t) request->count,
			  "err", LOG_TEXT, answer->error, "retry_in", LOG_SECONDS, pause, "hint", LOG_TEXT,
			  answer->outcome == PUBSUB_INVALID
				  ? "it is tried again in smaller requests; what stays refused comes again"
				  : pubsub_remedy(answer->outcome, answer->status),
			  NULL);
}

static void
finish(void *context, const struct pubsub_answer *answer)
{
	struct ack_request *request = context;
	struct ack *ack = request->ack;
	int64_t now = clock_ms();
	struct message *message;
	struct message *next;

	(void) FAULT_POINT("ack-answered");
	ack->in_flight--;
	if (ack->ordered_request == request->number)
	{
		ack->ordered_request = 0;
	}
	for (message = TAILQ_FIRST(&ack->board->list[MESSAGE_ACKING]); message != NULL; message = next)
	{
		next = TAILQ_NEXT(message, link);
		if (message->request == request->number)
		{
			settle(ack, message, request, answer, now);
		}
	}
	if (answer->outcome == PUBSUB_OK)
	{
		backoff_reset(&ack->backoff);
	}
	else
	{
		note_failure(ack, request, answer);
	}
	free(request);
}

/*
 * Acknowledgements of one ordering key must arrive in order, so only one request under way
 * carries messages that have one.
 */
static bool
must_stand_back(const struct ack *ack, const struct ack_request *request,
				const struct message *message)
{
	return message->lane != NULL && ack->ordered_request != 0 &&
		   ack->ordered_request != request->number;
}

static size_t
smaller(size_t one, size_t other)
{
	return one < other ? one : other;
}

/* A message that was in a refused request takes nobody in beyond its own limit. */
static bool
join(struct ack_request *request, struct message *message)
{
	size_t bytes = request->bytes + pubsub_id_size(message->ack_id);
	size_t limit =
		message->request_max != 0 ? smaller(message->request_max, request->limit) : request->limit;

	if (request->count >= limit || (request->count > 0 && bytes > PUBSUB_MAX_ID_BYTES))
	{
		return false;
	}
	request->limit = limit;
	request->bytes = bytes;
	request->ids[request->count++] = message->ack_id;
	message->request = request->number;
	return true;
}

/* The first that finds no room ends the request: those behind it may not overtake it. */
static struct ack_request *
fill_request(struct ack *ack)
{
	struct ack_request *request = memory_new(sizeof(*request));
	struct message *message;

	request->ack = ack;
	request->number = ++ack->last_request;
	request->limit = PUBSUB_MAX_IDS;
	TAILQ_FOREACH(message, &ack->board->list[MESSAGE_ACKING], link)
	{
		if (message->request != 0 || must_stand_back(ack, request, message))
		{
			continue;
		}
		if (!join(request, message))
		{
			break;
		}
		cease_to_wait(ack, message);
		if (message->lane != NULL)
		{
			ack->ordered_request = request->number;
		}
	}
	return request;
}

static void
send_request(struct ack *ack)
{
	struct ack_request *request = fill_request(ack);

	ack->in_flight++;
	pubsub_acknowledge(ack->pubsub, request->ids, request->count, finish, request);
}

static bool
is_due(const struct ack *ack)
{
	size_t sendable = ack->waiting - (ack->ordered_request != 0 ? ack->ordered : 0);

	return sendable > 0 && (ack->in_flight == 0 ||
							(sendable >= PUBSUB_MAX_IDS && ack->in_flight < REQUESTS_IN_FLIGHT));
}

void
ack_step(struct ack *ack, int64_t now)
{
	while (now >= ack->not_before && is_due(ack))
	{
		send_request(ack);
	}
}

int64_t
ack_deadline(const struct ack *ack)
{
	return is_due(ack) ? ack->not_before : CLOCK_NEVER;
}
