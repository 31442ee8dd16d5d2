/* SPDX-License-Identifier: PostgreSQL */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "delivery.h"
#include "entry.h"
#include "fault.h"
#include "memory.h"
#include "message.h"
#include "name.h"
#include "problem.h"
#include "pull.h"
#include "random.h"
#include "request.h"
#include "service.h"
#include "subscription.h"

#define MAX_MESSAGES 1000
#define MAX_BYTES ((size_t) 10 * 1024 * 1024)

/* One element of the answer. */
struct delivered
{
	struct entry *entry;
	struct message *message;
	char ack_id[ACKID_LEN + 1];
	int attempt;
	struct delivery_fault fault;
};

struct batch
{
	struct delivered *delivered;
	size_t count;
	size_t bytes;
};

static void
deliver(struct batch *batch, struct entry *entry)
{
	struct delivered *delivered = &batch->delivered[batch->count++];
	struct subscription *subscription = entry->subscription;

	delivered->entry = entry;
	delivered->message = message_hold(entry->message);
	delivered->attempt = entry->failures + 1;
	delivery_lease(entry, subscription->settings.ack_deadline * SECOND, delivered->ack_id);
	batch->bytes += entry->message->json_len;
}

static bool
has_room(const struct batch *batch, size_t max, const struct entry *next)
{
	return batch->count < max &&
		   (batch->count == 0 || batch->bytes + next->message->json_len <= MAX_BYTES);
}

/* Takes what is ready; of an ordering key as many consecutive messages as there is room for. */
static void
collect(struct batch *batch, struct subscription *subscription, size_t max)
{
	while (!list_empty(&subscription->ready))
	{
		struct entry *entry = OWNER(subscription->ready.next, struct entry, ready);

		while (entry != NULL && has_room(batch, max, entry))
		{
			deliver(batch, entry);
			fault_delivery(subscription->service->faults, subscription->name,
						   &batch->delivered[batch->count - 1].fault);
			entry = delivery_next_of_run(entry);
		}
		if (entry != NULL)
			break;
	}
}

/* What the faults do to messages is done when the answer is complete, or it would hold them too. */
static void
spoil(struct batch *batch)
{
	size_t count = batch->count;

	for (size_t i = 0; i < count; i++)
	{
		struct delivered *delivered = &batch->delivered[i];

		if (delivered->fault.duplicate)
			deliver(batch, delivered->entry);
		if (delivered->fault.share)
			delivery_repeat(delivered->entry);
		if (delivered->fault.expire)
			delivery_expire(delivered->entry);
	}
}

static void
shuffle(struct batch *batch)
{
	struct random random = {batch->count};

	for (size_t i = batch->count; i > 1; i--)
	{
		size_t j = random_below(&random, i);
		struct delivered swap = batch->delivered[i - 1];

		batch->delivered[i - 1] = batch->delivered[j];
		batch->delivered[j] = swap;
	}
}

static void
render(struct buf *out, const struct batch *batch, const struct subscription *subscription)
{
	buf_reserve(out, batch->bytes + batch->count * (ACKID_LEN + 100) + 100);
	buf_text(out, "{\n  \"receivedMessages\": [");
	for (size_t i = 0; i < batch->count; i++)
	{
		const struct delivered *delivered = &batch->delivered[i];

		buf_text(out, i == 0 ? "\n    {\n      \"ackId\": \"" : ",\n    {\n      \"ackId\": \"");
		buf_add(out, delivered->ack_id, ACKID_LEN);
		buf_text(out, "\",\n      \"message\": ");
		if (delivered->fault.raw != NULL)
			buf_text(out, delivered->fault.raw);
		else
			buf_add(out, delivered->message->json, delivered->message->json_len);
		if (subscription->settings.dead_letter_topic != NULL)
			buf_printf(out, ",\n      \"deliveryAttempt\": %d", delivered->attempt);
		buf_text(out, "\n    }");
	}
	buf_text(out, "\n  ]\n}\n");
}

static void
answer(struct request *request, struct subscription *subscription)
{
	size_t max =
		request->max_messages < MAX_MESSAGES ? (size_t) request->max_messages : MAX_MESSAGES;
	/* Twice as many, since a fault may deliver each a second time. */
	struct batch batch = {memory_get(2 * max * sizeof(struct delivered)), 0, 0};

	collect(&batch, subscription, max);
	spoil(&batch);
	if (request->effects.shuffle)
		shuffle(&batch);
	render(&request->answer, &batch, subscription);
	for (size_t i = 0; i < batch.count; i++)
		message_release(batch.delivered[i].message);
	free(batch.delivered);
	request_reply(request, NULL);
}

static void
patience_over(struct timer *timer)
{
	struct request *request = OWNER(timer, struct request, patience);

	link_remove(&request->waiting);
	request_reply_empty(request);
}

static void
wait_for_messages(struct request *request, struct subscription *subscription)
{
	list_append(&subscription->waiting, &request->waiting);
	request->patience.fire = patience_over;
	timer_set(&request->service->timers, &request->patience,
			  timer_now() + request->service->long_poll);
}

static bool
read_body(struct request *request, struct json_object *object, bool *immediately,
		  struct problem *problem)
{
	static const char *const names[] = {"maxMessages", "returnImmediately", "subscription", NULL};

	if (!body_known(object, names, problem) ||
		!body_take_int(object, "maxMessages", &request->max_messages, problem) ||
		!body_take_bool(object, "returnImmediately", immediately, problem))
		return false;
	if (request->max_messages > 0)
		return true;
	return problem_set(problem, STATUS_INVALID_ARGUMENT,
					   "No max_messages specified: it has to be a positive number, not %" PRId64
					   ".",
					   request->max_messages);
}

static bool
check_subscription(const struct subscription *subscription, struct problem *problem)
{
	if (!subscription->detached)
		return true;
	return problem_set(problem, STATUS_FAILED_PRECONDITION,
					   "Subscription %s is detached: it holds no messages and gets none.",
					   subscription->name);
}

void
pull_handle(struct request *request)
{
	struct subscription *subscription = subscription_find(request->service, request->name);
	struct json_object *object = request_object(request);
	struct problem problem = {0};
	bool immediately = false;

	if (object == NULL)
		return;
	request->service->counters.pulls++;
	if (!read_body(request, object, &immediately, &problem) ||
		!check_subscription(subscription, &problem))
		request_reply_problem(request, &problem);
	else if (!list_empty(&subscription->ready))
		answer(request, subscription);
	else if (immediately)
		request_reply_empty(request);
	else
		wait_for_messages(request, subscription);
	json_object_put(object);
}

void
pull_serve(struct subscription *subscription)
{
	while (!list_empty(&subscription->waiting) && !list_empty(&subscription->ready))
	{
		struct request *request = OWNER(subscription->waiting.next, struct request, waiting);

		link_remove(&request->waiting);
		timer_cancel(&request->service->timers, &request->patience);
		answer(request, subscription);
	}
}

void
pull_end(struct subscription *subscription)
{
	while (!list_empty(&subscription->waiting))
	{
		struct request *request = OWNER(subscription->waiting.next, struct request, waiting);
		struct problem problem = {0};

		link_remove(&request->waiting);
		timer_cancel(&request->service->timers, &request->patience);
		problem_set(&problem, STATUS_NOT_FOUND, "Resource not found (resource=%.300s).",
					name_id(subscription->name));
		request_reply_problem(request, &problem);
	}
}
