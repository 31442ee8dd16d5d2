/* SPDX-License-Identifier: PostgreSQL */
#include <inttypes.h>
#include <string.h>

#include "api.h"
#include "body.h"
#include "delivery.h"
#include "entry.h"
#include "fault.h"
#include "history.h"
#include "lookup.h"
#include "message.h"
#include "problem.h"
#include "request.h"
#include "service.h"
#include "subscription.h"

#define PERMANENT "PERMANENT_FAILURE_INVALID_ACK_ID"
#define UNORDERED "TRANSIENT_FAILURE_UNORDERED_ACK_ID"

/* A request about ack ids being worked off. */
struct work
{
	struct request *request;
	struct subscription *subscription;
	int64_t seconds;			  /* the new deadline; -1: acknowledge */
	struct json_object *failures; /* exactly-once: by ack id; NULL: none yet */
};

static void
add_failure(struct work *work, const char *ack_id, const char *reason)
{
	if (work->failures == NULL)
		work->failures = json_object_new_object();
	json_object_object_add(work->failures, ack_id, json_object_new_string(reason));
}

/* One ack id to acknowledge, as far as the faults let it. */
static enum verdict
acknowledge(struct work *work, struct entry *entry, const char **outcome)
{
	struct service *service = work->request->service;
	struct ack_fault fault = {0};
	enum verdict verdict;

	fault_ack_id(service->faults, work->subscription->name, &fault);
	if (fault.reason != NULL)
	{
		*outcome = fault.reason;
		return VERDICT_STALE;
	}
	if (service->lookup != NULL)
		lookup_add(service->lookup, work->subscription, entry->message);
	if (fault.ignore || work->request->effects.ignore)
	{
		*outcome = "ignored";
		return VERDICT_DONE;
	}
	if (fault.redeliver)
	{
		delivery_repeat(entry);
		*outcome = "redelivered";
		return VERDICT_DONE;
	}
	verdict = delivery_ack(entry);
	*outcome = verdict_name(verdict);
	if (verdict == VERDICT_DONE)
		service->counters.acked++;
	return verdict;
}

static enum verdict
modify(struct work *work, struct entry *entry, const char **outcome)
{
	enum verdict verdict = VERDICT_DONE;

	*outcome = "ignored";
	if (!work->request->effects.ignore)
	{
		verdict = delivery_modify(entry, work->seconds);
		*outcome = verdict_name(verdict);
	}
	return verdict;
}

static void
work_off(struct work *work, struct json_object *ack_id)
{
	const char *text = json_object_get_string(ack_id);
	size_t len = (size_t) json_object_get_string_len(ack_id);
	struct entry *entry;
	enum verdict verdict = delivery_find(work->subscription, text, len, &entry);
	const char *outcome = verdict_name(verdict);
	uint64_t message = entry == NULL ? 0 : entry->message->id;

	if (entry != NULL)
		verdict =
			work->seconds < 0 ? acknowledge(work, entry, &outcome) : modify(work, entry, &outcome);
	if (verdict != VERDICT_DONE && work->seconds < 0)
		work->request->service->counters.ignored++;
	history_answer(work->request->service->history, work->subscription, text, len, message,
				   work->seconds, outcome);
	if (verdict == VERDICT_DONE || !work->subscription->settings.exactly_once)
		return;
	if (verdict == VERDICT_UNORDERED)
		add_failure(work, text, UNORDERED);
	else if (strstr(outcome, "_FAILURE_") != NULL)
		add_failure(work, text, outcome);
	else
		add_failure(work, text, PERMANENT);
}

/*
 * Without exactly-once delivery an id that was never given out spoils the whole request. With it,
 * such an id fails alone.
 */
static bool
check_ids(const struct work *work, struct json_object *ids, struct problem *problem)
{
	size_t count = ids == NULL ? 0 : json_object_array_length(ids);

	if (count == 0)
		return problem_set(problem, STATUS_INVALID_ARGUMENT, "No ack ids specified.");
	for (size_t i = 0; i < count; i++)
	{
		struct json_object *id = json_object_array_get_idx(ids, i);
		struct entry *entry;

		if (!json_object_is_type(id, json_type_string))
			return problem_set(problem, STATUS_INVALID_ARGUMENT,
							   "Invalid value at 'ackIds' (TYPE_STRING): %.200s",
							   json_object_to_json_string(id));
		if (!work->subscription->settings.exactly_once &&
			delivery_find(work->subscription, json_object_get_string(id),
						  (size_t) json_object_get_string_len(id), &entry) == VERDICT_FOREIGN)
			return problem_set(problem, STATUS_INVALID_ARGUMENT,
							   "You have passed an invalid ack ID to the service (ack_id=%.300s): "
							   "it is not one that subscription %.200s gave out.",
							   json_object_get_string(id), work->subscription->name);
	}
	return true;
}

static void
reply(struct work *work)
{
	struct problem problem = {0};

	if (work->failures == NULL)
	{
		request_reply_empty(work->request);
		return;
	}
	problem_set(&problem, STATUS_INVALID_ARGUMENT,
				"Some acknowledgement ids in the request were invalid. This could be because the "
				"acknowledgement ids have expired or the acknowledgement ids were malformed.");
	problem_detail(&problem, "EXACTLY_ONCE_ACKID_FAILURE", "pubsub.googleapis.com", work->failures);
	request_reply_problem(work->request, &problem);
}

static void
handle(struct request *request, struct json_object *object, int64_t seconds)
{
	struct work work = {request, subscription_find(request->service, request->name), seconds, NULL};
	struct json_object *ids = NULL;
	struct problem problem = {0};

	if (!body_take_array(object, "ackIds", &ids, &problem) || !check_ids(&work, ids, &problem))
	{
		request_reply_problem(request, &problem);
		return;
	}
	for (size_t i = 0; i < json_object_array_length(ids); i++)
		work_off(&work, json_object_array_get_idx(ids, i));
	reply(&work);
}

void
subscription_acknowledge(struct request *request)
{
	static const char *const names[] = {"ackIds", "subscription", NULL};
	struct json_object *object = request_object(request);
	struct problem problem = {0};

	if (object == NULL)
		return;
	if (body_known(object, names, &problem))
		handle(request, object, -1);
	else
		request_reply_problem(request, &problem);
	json_object_put(object);
}

void
subscription_modify_deadline(struct request *request)
{
	static const char *const names[] = {"ackIds", "ackDeadlineSeconds", "subscription", NULL};
	struct json_object *object = request_object(request);
	struct problem problem = {0};
	int64_t seconds = 0;

	if (object == NULL)
		return;
	if (!body_known(object, names, &problem) ||
		!body_take_int(object, "ackDeadlineSeconds", &seconds, &problem))
		request_reply_problem(request, &problem);
	else if (seconds < 0 || seconds > 600)
	{
		problem_set(&problem, STATUS_INVALID_ARGUMENT,
					"Invalid ack deadline given (ack_deadline=%" PRId64
					"). It has to be between 0 and 600 seconds.",
					seconds);
		request_reply_problem(request, &problem);
	}
	else
		handle(request, object, seconds);
	json_object_put(object);
}
