/* SPDX-License-Identifier: PostgreSQL */
#include "ack.h"

#include <stdlib.h>

#include "clock.h"
#include "log.h"
#include "memory.h"

/* While one request is under way, the next ones grow instead of following at once. */
#define REQUESTS_IN_FLIGHT 4

struct ack_request
{
	struct ack *ack;
	unsigned number;
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

void
ack_add(struct ack *ack, struct message *message)
{
	message_set_state(ack->board, message, MESSAGE_ACKING);
	message->request = 0;
	message->request_max = 0;
	ack->waiting++;
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
			  message->key, "err", LOG_TEXT,
			  "the message will come again and be a duplicate", NULL);
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
	message->request = 0;
	ack->waiting++;
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
settle(struct ack *ack, struct message *message, const struct ack_request *request,
	   const struct pubsub_answer *answer, int64_t now)
{
	switch (pubsub_id_result(answer, message->ack_id))
	{
		case PUBSUB_ID_DONE:
			ack->acked++;
			message_forget(ack->board, message);
			break;
		case PUBSUB_ID_AGAIN:
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
				send_again(ack, message, now);
			}
			break;
	}
}

static void
note_failure(struct ack *ack, const struct ack_request *request, const struct pubsub_answer *answer)
{
	int64_t pause = backoff_next(&ack->backoff);

	if (answer->retry_after_ms > pause)
	{
		pause = answer->retry_after_ms;
	}
	/* A refused request is cut and sent again at once: nothing is overloaded. */
	if (answer->outcome == PUBSUB_INVALID)
	{
		pause = 0;
	}
	ack->not_before = clock_ms() + pause;
	log_event(LOG_WARNING, "ack_failed", "outcome", LOG_TEXT, pubsub_outcome_name(answer->outcome),
			  "status", LOG_INT, (int64_t) answer->status, "ids", LOG_INT, (int64_t) request->count,
			  "err", LOG_TEXT, answer->error, "retry_in", LOG_SECONDS, pause, "hint", LOG_TEXT,
			  answer->outcome == PUBSUB_INVALID
				  ? "it is tried again in smaller requests; what stays refused comes again"
				  : pubsub_remedy(answer->outcome),
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

	ack->in_flight--;
	if (ack->ordered_request == request->number)
	{
		ack->ordered_request = 0;
	}
	if (answer->outcome == PUBSUB_OK)
	{
		backoff_reset(&ack->backoff);
	}
	else
	{
		note_failure(ack, request, answer);
	}
	for (message = TAILQ_FIRST(&ack->board->list[MESSAGE_ACKING]); message != NULL; message = next)
	{
		next = TAILQ_NEXT(message, link);
		if (message->request == request->number)
		{
			settle(ack, message, request, answer, now);
		}
	}
	free(request);
}

/*
 * Acknowledgements of one ordering key must arrive in order, so only one request under way
 * carries messages that have one.
 */
static bool
may_join(const struct ack *ack, const struct ack_request *request, const struct message *message,
		 size_t bytes)
{
	if (message->request != 0 || request->count == PUBSUB_MAX_IDS ||
		bytes + pubsub_id_size(message->ack_id) > PUBSUB_MAX_ID_BYTES ||
		(message->request_max != 0 && request->count >= message->request_max))
	{
		return false;
	}
	return message->lane == NULL || ack->ordered_request == 0 ||
		   ack->ordered_request == request->number;
}

static struct ack_request *
fill_request(struct ack *ack)
{
	struct ack_request *request = memory_new(sizeof(*request));
	struct message *message;
	size_t bytes = 0;

	request->ack = ack;
	request->number = ++ack->last_request;
	TAILQ_FOREACH(message, &ack->board->list[MESSAGE_ACKING], link)
	{
		if (!may_join(ack, request, message, bytes))
		{
			continue;
		}
		message->request = request->number;
		bytes += pubsub_id_size(message->ack_id);
		request->ids[request->count++] = message->ack_id;
		if (message->lane != NULL)
		{
			ack->ordered_request = request->number;
		}
	}
	ack->waiting -= request->count;
	return request;
}

/* False when nothing that waits may go now. */
static bool
send_request(struct ack *ack)
{
	struct ack_request *request = fill_request(ack);

	if (request->count == 0)
	{
		free(request);
		return false;
	}
	ack->in_flight++;
	pubsub_acknowledge(ack->pubsub, request->ids, request->count, finish, request);
	return true;
}

static bool
is_due(const struct ack *ack)
{
	return ack->waiting > 0 && (ack->in_flight == 0 || (ack->waiting >= PUBSUB_MAX_IDS &&
														ack->in_flight < REQUESTS_IN_FLIGHT));
}

void
ack_step(struct ack *ack, int64_t now)
{
	while (now >= ack->not_before && is_due(ack) && send_request(ack))
	{
	}
}

int64_t
ack_deadline(const struct ack *ack)
{
	return is_due(ack) ? ack->not_before : CLOCK_NEVER;
}
