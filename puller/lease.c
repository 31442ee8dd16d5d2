/* SPDX-License-Identifier: PostgreSQL */
#include "lease.h"

#include <stdlib.h>

#include "clock.h"
#include "fault_point.h"
#include "log.h"
#include "memory.h"

#define RETURN_MAX_MS 600000
/* The deadline's start is known to no better than this. */
#define MARGIN_MS 1000
/* A failed extension is tried again after this. */
#define RETRY_MS 1000
/* What is due within this goes along with what is due now. */
#define COLLECT_MS 1000

struct lease_request
{
	struct lease *lease;
	unsigned number;
	int seconds;
	size_t limit;
	size_t count;
	char *ids[PUBSUB_MAX_IDS];
};

void
lease_init(struct lease *lease, struct message_board *board, struct pubsub *pubsub,
		   const struct config *config)
{
	*lease =
		(struct lease){.board = board, .pubsub = pubsub, .config = config, .next_due = CLOCK_NEVER};
}

/* The end of --max-lease is due before anything that comes later. */
static void
set_due(struct lease *lease, struct message *message, int64_t due)
{
	if (due > message->lease_limit && message->lease_limit > clock_ms())
	{
		due = message->lease_limit;
	}
	message->lease_due = due;
	if (due < lease->next_due)
	{
		lease->next_due = due;
	}
}

void
lease_begin(struct lease *lease, struct message *message, int64_t start, int64_t deadline_ms)
{
	message->lease_end = start - MARGIN_MS + deadline_ms;
	message->lease_limit = start + lease->config->max_lease;
	set_due(lease, message, start + deadline_ms / 3);
}

void
lease_return(struct lease *lease, struct message *message, int64_t pause_ms)
{
	message_set_state(lease->board, message, MESSAGE_RETURNING);
	message->request = 0;
	message->return_seconds =
		(int) (((pause_ms < RETURN_MAX_MS ? pause_ms : RETURN_MAX_MS) + 999) / 1000);
	lease->given_back = true;
	(void) FAULT_POINT("give-back");
}

bool
lease_is_idle(const struct lease *lease)
{
	return lease->board->count[MESSAGE_RETURNING] == 0;
}

int64_t
lease_deadline(const struct lease *lease)
{
	return lease->given_back ? 0 : lease->next_due;
}

static struct lease_request *
new_request(struct lease *lease, int seconds)
{
	struct lease_request *request = memory_new(sizeof(*request));

	request->lease = lease;
	request->number = ++lease->last_request;
	request->seconds = seconds;
	request->limit = PUBSUB_MAX_IDS;
	return request;
}

static bool
has_room(const struct lease_request *request, size_t bytes, const struct message *message)
{
	return request->count < request->limit &&
		   bytes + pubsub_id_size(message->ack_id) <= PUBSUB_MAX_ID_BYTES;
}

static void
log_failed(const struct lease_request *request, const struct pubsub_answer *answer)
{
	log_event(LOG_WARNING, "lease_request_failed", "seconds", LOG_INT, (int64_t) request->seconds,
			  "ids", LOG_INT, (int64_t) request->count, "outcome", LOG_TEXT,
			  pubsub_outcome_name(answer->outcome), "status", LOG_INT, (int64_t) answer->status,
			  "err", LOG_TEXT, answer->error, "hint", LOG_TEXT,
			  pubsub_remedy(answer->outcome, answer->status), NULL);
}

/*
 * A lost lease ends the message's stay, unless a transaction runs it or an acknowledgement is on
 * its way: those end by themselves, and the claim makes the redelivery a duplicate.
 */
static void
lose(struct lease *lease, struct message *message)
{
	lease->expired++;
	message->lease_due = CLOCK_NEVER;
	message->lease_end = 0; /* also where it was extended since, or so it seemed */
	if (message->state != MESSAGE_READY)
	{
		return;
	}
	log_event(LOG_INFO, "lease_lost", "message_id", LOG_TEXT, message->message_id, "key", LOG_TEXT,
			  message->key, "ordering_key", LOG_TEXT, message->ordering_key, "hint", LOG_TEXT,
			  "it comes again; if this is frequent, raise ackDeadlineSeconds of the subscription",
			  NULL);
	message_end_lane(lease->board, message);
	message_forget(lease->board, message);
}

/* A refusal that names no id: the request is cut into halves until the bad id stands alone. */
static void
cut_down(struct lease *lease, struct message *message, size_t count)
{
	if (count == 1)
	{
		lose(lease, message);
		return;
	}
	message->lease_max = (count + 1) / 2;
	set_due(lease, message, clock_ms());
}

static void
settle_extension(struct lease *lease, struct message *message, const struct lease_request *request,
				 const struct pubsub_answer *answer)
{
	message->lease_request = 0;
	if (message->state == MESSAGE_RETURNING)
	{
		lease->given_back = true;
		return;
	}
	switch (pubsub_id_result(answer, message->ack_id))
	{
		case PUBSUB_ID_DONE:
			lease->extended++;
			message->lease_max = 0;
			message->lease_end = answer->sent_ms + (int64_t) request->seconds * 1000 - MARGIN_MS;
			set_due(lease, message, answer->sent_ms + (int64_t) request->seconds * 500);
			break;
		case PUBSUB_ID_UNKNOWN:
			if (answer->outcome == PUBSUB_INVALID)
			{
				cut_down(lease, message, request->count);
				break;
			}
			/* fallthrough */
		case PUBSUB_ID_AGAIN:
			set_due(lease, message, clock_ms() + RETRY_MS);
			break;
		case PUBSUB_ID_INVALID:
			lose(lease, message);
			break;
	}
}

static void
finish_extension(void *context, const struct pubsub_answer *answer)
{
	struct lease_request *request = context;
	struct lease *lease = request->lease;
	struct message *message;
	struct message *next;

	(void) FAULT_POINT("modack-answered");
	if (answer->outcome != PUBSUB_OK)
	{
		log_failed(request, answer);
	}
	for (int state = 0; state < MESSAGE_STATES; state++)
	{
		for (message = TAILQ_FIRST(&lease->board->list[state]); message != NULL; message = next)
		{
			next = TAILQ_NEXT(message, link);
			if (message->lease_request == request->number)
			{
				settle_extension(lease, message, request, answer);
			}
		}
	}
	free(request);
}

static bool
wants_extension(const struct message *message, int64_t now)
{
	return message->lease_request == 0 && message->lease_due <= now + COLLECT_MS &&
		   message->lease_limit > now && message->lease_end > now;
}

static void
add_extension(struct lease *lease, struct lease_request **request, size_t *bytes,
			  struct message *message)
{
	if (*request != NULL && (!has_room(*request, *bytes, message) ||
							 (message->lease_max != 0 && (*request)->count >= message->lease_max)))
	{
		pubsub_modify_ack_deadline(lease->pubsub, (*request)->ids, (*request)->count,
								   (*request)->seconds, finish_extension, *request);
		*request = NULL;
	}
	if (*request == NULL)
	{
		*request = new_request(lease, LEASE_EXTENSION_MS / 1000);
		*bytes = 0;
	}
	if (message->lease_max != 0 && message->lease_max < (*request)->limit)
	{
		(*request)->limit = message->lease_max;
	}
	message->lease_request = (*request)->number;
	*bytes += pubsub_id_size(message->ack_id);
	(*request)->ids[(*request)->count++] = message->ack_id;
}

/* --max-lease is over: whoever gets it next may be luckier, and takes what follows it as well. */
static void
give_up(struct lease *lease, struct message *message)
{
	log_event(LOG_WARNING, "max_lease_over", "message_id", LOG_TEXT, message->message_id, "key",
			  LOG_TEXT, message->key, "ordering_key", LOG_TEXT, message->ordering_key, "hint",
			  LOG_TEXT, "it is given back; raise --workers or --max-lease if this happens often",
			  NULL);
	message_end_lane(lease->board, message);
	lease_return(lease, message, 0);
}

/*
 * Once around everything that is held. Messages that are being given back have got the deadline
 * they shall have.
 */
static void
extend(struct lease *lease, int64_t now)
{
	struct lease_request *request = NULL;
	size_t bytes = 0;
	struct message *message;
	struct message *next;

	lease->next_due = CLOCK_NEVER;
	for (int state = 0; state < MESSAGE_RETURNING; state++)
	{
		for (message = TAILQ_FIRST(&lease->board->list[state]); message != NULL; message = next)
		{
			next = TAILQ_NEXT(message, link);
			if (wants_extension(message, now))
			{
				add_extension(lease, &request, &bytes, message);
			}
			else if (state == MESSAGE_READY && message->lease_limit <= now)
			{
				give_up(lease, message);
			}
			else if (message->lease_due != CLOCK_NEVER && message->lease_end <= now)
			{
				lose(lease, message);
			}
			else if (message->lease_due != CLOCK_NEVER && message->lease_request == 0)
			{
				/* Past --max-lease nothing is due any more but the end. */
				set_due(lease, message,
						message->lease_limit <= now ? message->lease_end : message->lease_due);
			}
		}
	}
	if (request != NULL)
	{
		pubsub_modify_ack_deadline(lease->pubsub, request->ids, request->count, request->seconds,
								   finish_extension, request);
	}
}

/* Whatever the answer was, the message comes again: soon by our word, or when its lease ends. */
static void
finish_return(void *context, const struct pubsub_answer *answer)
{
	struct lease_request *request = context;
	struct lease *lease = request->lease;
	struct message *message;
	struct message *next;

	(void) FAULT_POINT("given-back");
	lease->returned_ms = clock_ms();
	if (answer->outcome != PUBSUB_OK)
	{
		log_failed(request, answer);
	}
	for (message = TAILQ_FIRST(&lease->board->list[MESSAGE_RETURNING]); message != NULL;
		 message = next)
	{
		next = TAILQ_NEXT(message, link);
		if (message->request == request->number)
		{
			message_forget(lease->board, message);
		}
	}
	free(request);
}

/* One request for messages of one pause: a request carries one deadline. False when none waits. */
static bool
send_return(struct lease *lease)
{
	struct lease_request *request = NULL;
	struct message *message;
	size_t bytes = 0;

	TAILQ_FOREACH(message, &lease->board->list[MESSAGE_RETURNING], link)
	{
		/* An extension that is still on its way might come in last. */
		if (message->request != 0 || message->lease_request != 0)
		{
			continue;
		}
		if (request == NULL)
		{
			request = new_request(lease, message->return_seconds);
		}
		if (message->return_seconds == request->seconds &&
			(request->count == 0 || has_room(request, bytes, message)))
		{
			message->request = request->number;
			bytes += pubsub_id_size(message->ack_id);
			request->ids[request->count++] = message->ack_id;
		}
	}
	if (request == NULL)
	{
		return false;
	}
	pubsub_modify_ack_deadline(lease->pubsub, request->ids, request->count, request->seconds,
							   finish_return, request);
	return true;
}

void
lease_step(struct lease *lease, int64_t now)
{
	while (lease->given_back && send_return(lease))
	{
	}
	lease->given_back = false;
	if (now >= lease->next_due)
	{
		extend(lease, now);
	}
}
