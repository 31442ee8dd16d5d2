/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "body.h"
#include "moment.h"
#include "name.h"
#include "page.h"
#include "problem.h"
#include "pull.h"
#include "request.h"
#include "service.h"
#include "snapshot.h"
#include "subscription.h"
#include "topic.h"

static bool
check_new(struct request *request, struct json_object *object, struct settings *settings,
		  struct problem *problem)
{
	if (subscription_find(request->service, request->name) != NULL)
		return problem_set(problem, STATUS_ALREADY_EXISTS,
						   "Resource already exists in the project (resource=%s).",
						   name_id(request->name));
	if (!settings_create(settings, object, problem))
		return false;
	if (topic_find(request->service, settings->topic) != NULL)
		return true;
	return problem_set(problem, STATUS_NOT_FOUND, "Resource not found (resource=%s).",
					   name_id(settings->topic));
}

void
subscription_create(struct request *request)
{
	struct json_object *object = request_object(request);
	struct settings settings = {0};
	struct problem problem = {0};

	if (object == NULL)
		return;
	if (check_new(request, object, &settings, &problem))
		request_reply(request, subscription_render(
								   subscription_new(request->service, request->name, &settings)));
	else
	{
		settings_free(&settings);
		request_reply_problem(request, &problem);
	}
	json_object_put(object);
}

void
subscription_get(struct request *request)
{
	request_reply(request, subscription_render(subscription_find(request->service, request->name)));
}

/* {"subscription": {…}, "updateMask": "ackDeadlineSeconds,labels"} */
static bool
read_patch(struct json_object *object, struct settings *settings, struct problem *problem)
{
	static const char *const names[] = {"subscription", "updateMask", NULL};
	struct json_object *changed = NULL;
	const char *mask = "";

	if (!body_known(object, names, problem) ||
		!body_take_object(object, "subscription", &changed, problem) ||
		!body_take_string(object, "updateMask", &mask, problem))
		return false;
	if (changed == NULL)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "The request has no subscription to take the new values from.");
	return settings_patch(settings, changed, mask, problem);
}

void
subscription_patch(struct request *request)
{
	struct subscription *subscription = subscription_find(request->service, request->name);
	struct json_object *object = request_object(request);
	struct settings settings;
	struct problem problem = {0};

	if (object == NULL)
		return;
	settings_copy(&settings, &subscription->settings);
	if (read_patch(object, &settings, &problem))
	{
		subscription_change(subscription, &settings);
		request_reply(request, subscription_render(subscription));
	}
	else
	{
		settings_free(&settings);
		request_reply_problem(request, &problem);
	}
	json_object_put(object);
}

void
subscription_delete(struct request *request)
{
	struct subscription *subscription = subscription_find(request->service, request->name);

	pull_end(subscription);
	subscription_free(subscription);
	request_reply_empty(request);
}

static struct json_object *
render_member(void *subscription)
{
	return subscription_render(subscription);
}

void
subscription_list(struct request *request)
{
	page_reply(request, request->service->subscriptions, "subscriptions", NULL, render_member);
}

void
subscription_modify_push(struct request *request)
{
	struct json_object *object = request_object(request);
	struct json_object *push = NULL;
	struct problem problem = {0};

	if (object == NULL)
		return;
	if (body_take_object(object, "pushConfig", &push, &problem) &&
		(push == NULL || body_member(push, "pushEndpoint") == NULL))
		request_reply_empty(request);
	else
	{
		if (problem.status == STATUS_OK)
			problem_set(&problem, STATUS_UNIMPLEMENTED,
						"This server delivers by pull only: leave pushConfig empty.");
		request_reply_problem(request, &problem);
	}
	json_object_put(object);
}

static bool
seek_snapshot(struct subscription *subscription, const char *name, struct problem *problem)
{
	struct snapshot *snapshot;

	if (!name_check(name, KIND_SNAPSHOT, problem))
		return false;
	snapshot = snapshot_find(subscription->service, name);
	if (snapshot == NULL)
		return problem_set(problem, STATUS_NOT_FOUND, "Resource not found (resource=%s).",
						   name_id(name));
	if (strcmp(snapshot->topic, subscription->settings.topic) != 0)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "The snapshot is of topic %s, the subscription of topic %s.",
						   snapshot->topic, subscription->settings.topic);
	snapshot_restore(snapshot, subscription);
	return true;
}

static bool
seek(struct subscription *subscription, struct json_object *object, struct problem *problem)
{
	static const char *const names[] = {"time", "snapshot", "subscription", NULL};
	const char *time = NULL;
	const char *snapshot = NULL;
	int64_t moment;

	if (!body_known(object, names, problem) || !body_take_string(object, "time", &time, problem) ||
		!body_take_string(object, "snapshot", &snapshot, problem))
		return false;
	if ((time == NULL) == (snapshot == NULL))
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Invalid seek target: give either a time or a snapshot.");
	if (snapshot != NULL)
		return seek_snapshot(subscription, snapshot, problem);
	if (!moment_parse(time, &moment))
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Invalid value at 'time' (a moment such as \"2026-01-31T12:00:00Z\"): "
						   "%.100s",
						   time);
	snapshot_seek(subscription, moment);
	return true;
}

void
subscription_seek(struct request *request)
{
	struct json_object *object = request_object(request);
	struct problem problem = {0};

	if (object == NULL)
		return;
	if (seek(subscription_find(request->service, request->name), object, &problem))
		request_reply_empty(request);
	else
		request_reply_problem(request, &problem);
	json_object_put(object);
}

void
subscription_detach(struct request *request)
{
	struct subscription *subscription = subscription_find(request->service, request->name);

	subscription_clear(subscription);
	subscription->detached = true;
	request_reply_empty(request);
}
