/* SPDX-License-Identifier: PostgreSQL */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "control.h"
#include "fault.h"
#include "memory.h"
#include "name.h"
#include "permission.h"
#include "problem.h"
#include "pull.h"
#include "request.h"
#include "route.h"
#include "service.h"
#include "snapshot.h"
#include "subscription.h"
#include "token.h"
#include "topic.h"

#define LIMIT_PUBLISH ((size_t) 14 * 1024 * 1024)
#define LIMIT_ACK ((size_t) 524288)
#define LIMIT_OTHER ((size_t) 1024 * 1024)

/* What a path names. */
enum shape
{
	SHAPE_TOPIC,
	SHAPE_SUBSCRIPTION,
	SHAPE_SNAPSHOT,
	SHAPE_TOPICS, /* the lists of a project */
	SHAPE_SUBSCRIPTIONS,
	SHAPE_SNAPSHOTS,
	SHAPE_TOPIC_SUBSCRIPTIONS, /* the lists of a topic */
	SHAPE_TOPIC_SNAPSHOTS,
	SHAPE_NOTHING
};

struct route
{
	const char *method;
	enum shape shape;
	const char *verb; /* NULL: none */
	handler handle;
	enum fault_event event;
	size_t limit;			/* of the body, in bytes */
	const char *permission; /* NULL: takes none */
};

static const struct route routes[] = {
	{"POST", SHAPE_SUBSCRIPTION, "pull", pull_handle, EVENT_PULL, LIMIT_OTHER,
	 "pubsub.subscriptions.consume"},
	{"POST", SHAPE_SUBSCRIPTION, "acknowledge", subscription_acknowledge, EVENT_ACK, LIMIT_ACK,
	 "pubsub.subscriptions.consume"},
	{"POST", SHAPE_SUBSCRIPTION, "modifyAckDeadline", subscription_modify_deadline, EVENT_MODACK,
	 LIMIT_ACK, "pubsub.subscriptions.consume"},
	{"POST", SHAPE_TOPIC, "publish", topic_publish, EVENT_PUBLISH, LIMIT_PUBLISH,
	 "pubsub.topics.publish"},
	{"PUT", SHAPE_TOPIC, NULL, topic_create, EVENT_OTHER, LIMIT_OTHER, "pubsub.topics.create"},
	{"GET", SHAPE_TOPIC, NULL, topic_get, EVENT_GET, LIMIT_OTHER, "pubsub.topics.get"},
	{"PATCH", SHAPE_TOPIC, NULL, topic_patch, EVENT_OTHER, LIMIT_OTHER, "pubsub.topics.update"},
	{"DELETE", SHAPE_TOPIC, NULL, topic_delete, EVENT_OTHER, LIMIT_OTHER, "pubsub.topics.delete"},
	{"GET", SHAPE_TOPICS, NULL, topic_list, EVENT_OTHER, LIMIT_OTHER, "pubsub.topics.list"},
	{"GET", SHAPE_TOPIC_SUBSCRIPTIONS, NULL, topic_list_subscriptions, EVENT_OTHER, LIMIT_OTHER,
	 "pubsub.topics.get"},
	{"GET", SHAPE_TOPIC_SNAPSHOTS, NULL, topic_list_snapshots, EVENT_OTHER, LIMIT_OTHER,
	 "pubsub.topics.get"},
	{"PUT", SHAPE_SUBSCRIPTION, NULL, subscription_create, EVENT_OTHER, LIMIT_OTHER,
	 "pubsub.subscriptions.create"},
	{"GET", SHAPE_SUBSCRIPTION, NULL, subscription_get, EVENT_GET, LIMIT_OTHER,
	 "pubsub.subscriptions.get"},
	{"PATCH", SHAPE_SUBSCRIPTION, NULL, subscription_patch, EVENT_OTHER, LIMIT_OTHER,
	 "pubsub.subscriptions.update"},
	{"DELETE", SHAPE_SUBSCRIPTION, NULL, subscription_delete, EVENT_OTHER, LIMIT_OTHER,
	 "pubsub.subscriptions.delete"},
	{"GET", SHAPE_SUBSCRIPTIONS, NULL, subscription_list, EVENT_OTHER, LIMIT_OTHER,
	 "pubsub.subscriptions.list"},
	{"POST", SHAPE_SUBSCRIPTION, "modifyPushConfig", subscription_modify_push, EVENT_OTHER,
	 LIMIT_OTHER, "pubsub.subscriptions.update"},
	{"POST", SHAPE_SUBSCRIPTION, "seek", subscription_seek, EVENT_SEEK, LIMIT_OTHER,
	 "pubsub.subscriptions.consume"},
	{"POST", SHAPE_SUBSCRIPTION, "detach", subscription_detach, EVENT_OTHER, LIMIT_OTHER,
	 "pubsub.topics.detachSubscription"},
	{"PUT", SHAPE_SNAPSHOT, NULL, snapshot_create, EVENT_OTHER, LIMIT_OTHER,
	 "pubsub.snapshots.create"},
	{"GET", SHAPE_SNAPSHOT, NULL, snapshot_get, EVENT_GET, LIMIT_OTHER, "pubsub.snapshots.get"},
	{"PATCH", SHAPE_SNAPSHOT, NULL, snapshot_patch, EVENT_OTHER, LIMIT_OTHER,
	 "pubsub.snapshots.update"},
	{"DELETE", SHAPE_SNAPSHOT, NULL, snapshot_delete, EVENT_OTHER, LIMIT_OTHER,
	 "pubsub.snapshots.delete"},
	{"GET", SHAPE_SNAPSHOTS, NULL, snapshot_list, EVENT_OTHER, LIMIT_OTHER,
	 "pubsub.snapshots.list"},
	{"POST", SHAPE_SUBSCRIPTION, "testIamPermissions", permission_test, EVENT_OTHER, LIMIT_OTHER,
	 NULL},
	{"POST", SHAPE_TOPIC, "testIamPermissions", permission_test, EVENT_OTHER, LIMIT_OTHER, NULL},
};

/* Cuts the next part off a path; NULL when there is none. */
static char *
next_part(char **rest)
{
	return *rest == NULL ? NULL : strsep(rest, "/");
}

static enum shape
shape_of_collection(const char *collection, bool with_id)
{
	for (int kind = KIND_TOPIC; kind <= KIND_SNAPSHOT; kind++)
	{
		if (strcmp(collection, name_collection(kind)) == 0)
			return (with_id ? SHAPE_TOPIC : SHAPE_TOPICS) + kind;
	}
	return SHAPE_NOTHING;
}

static enum shape
shape_of_tail(enum shape shape, const char *tail)
{
	if (tail == NULL)
		return shape;
	if (shape == SHAPE_TOPIC && strcmp(tail, "subscriptions") == 0)
		return SHAPE_TOPIC_SUBSCRIPTIONS;
	if (shape == SHAPE_TOPIC && strcmp(tail, "snapshots") == 0)
		return SHAPE_TOPIC_SNAPSHOTS;
	return SHAPE_NOTHING;
}

/* Takes the path apart; sets the name and the verb of the request. */
static enum shape
parse_path(struct request *request)
{
	char *rest = request->path;
	const char *version;
	const char *project;
	const char *collection;
	char *id;
	const char *tail;
	enum shape shape;
	struct buf name = {0};

	rest += *rest == '/';
	version = next_part(&rest);
	if (strcmp(version, "v1") != 0 || rest == NULL || strncmp(rest, "projects/", 9) != 0)
		return SHAPE_NOTHING;
	next_part(&rest);
	project = next_part(&rest);
	collection = next_part(&rest);
	if (collection == NULL || *project == '\0')
		return SHAPE_NOTHING;
	id = next_part(&rest);
	tail = next_part(&rest);
	shape = shape_of_tail(shape_of_collection(collection, id != NULL), tail);
	buf_printf(&name, "projects/%s", project);
	if (id != NULL)
	{
		char *colon = strrchr(id, ':');

		if (colon != NULL)
		{
			*colon = '\0';
			request->verb = colon + 1;
		}
		buf_printf(&name, "/%s/%s", collection, id);
	}
	request->name = name.data;
	return rest == NULL ? shape : SHAPE_NOTHING;
}

static const struct route *
find_route(const struct request *request, enum shape shape)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
	{
		const struct route *route = &routes[i];

		if (route->shape == shape && strcmp(route->method, request->method) == 0 &&
			(route->verb == NULL) == (request->verb == NULL) &&
			(route->verb == NULL || strcmp(route->verb, request->verb) == 0))
			return route;
	}
	return NULL;
}

static bool
check_exists(struct request *request, enum shape shape, struct problem *problem)
{
	struct service *service = request->service;
	bool exists = true;

	if (strcmp(request->method, "PUT") == 0)
		return true;
	if (shape == SHAPE_TOPIC || shape == SHAPE_TOPIC_SUBSCRIPTIONS ||
		shape == SHAPE_TOPIC_SNAPSHOTS)
		exists = topic_find(service, request->name) != NULL;
	else if (shape == SHAPE_SUBSCRIPTION)
		exists = subscription_find(service, request->name) != NULL;
	else if (shape == SHAPE_SNAPSHOT)
		exists = snapshot_find(service, request->name) != NULL;
	if (exists)
		return true;
	return problem_set(problem, STATUS_NOT_FOUND, "Resource not found (resource=%.300s).",
					   name_id(request->name));
}

static bool
check_name(struct request *request, enum shape shape, struct problem *problem)
{
	switch (shape)
	{
		case SHAPE_TOPIC:
		case SHAPE_TOPIC_SUBSCRIPTIONS:
		case SHAPE_TOPIC_SNAPSHOTS:
			return name_check(request->name, KIND_TOPIC, problem);
		case SHAPE_SUBSCRIPTION:
			return name_check(request->name, KIND_SUBSCRIPTION, problem);
		case SHAPE_SNAPSHOT:
			return name_check(request->name, KIND_SNAPSHOT, problem);
		case SHAPE_TOPICS:
		case SHAPE_SUBSCRIPTIONS:
		case SHAPE_SNAPSHOTS:
		case SHAPE_NOTHING:
			break;
	}
	return true;
}

static bool
check_size(const struct request *request, const struct route *route, struct problem *problem)
{
	if (!request->too_large && request->body.len <= route->limit)
		return true;
	return problem_set(problem, STATUS_INVALID_ARGUMENT,
					   "Request payload size exceeds the limit: %zu bytes.", route->limit);
}

/* A fault that answers in the service's place. */
static bool
check_status(const struct request *request, struct problem *problem)
{
	const struct effects *effects = &request->effects;

	if (effects->status == 0)
		return true;
	problem->http = effects->status;
	problem_set(problem, status_of_http(effects->status), "%s", effects->message);
	if (problem->status == STATUS_UNAUTHENTICATED)
		problem_detail(problem, "ACCESS_TOKEN_EXPIRED", "googleapis.com", NULL);
	return false;
}

static const char *
subscription_of(const struct request *request, enum shape shape)
{
	return shape == SHAPE_SUBSCRIPTION ? request->name : NULL;
}

void
route_request(struct request *request)
{
	struct service *service = request->service;
	struct problem problem = {0};
	enum shape shape;
	const struct route *route;

	if (strncmp(request->path, "/control/", 9) == 0)
	{
		control_handle(request);
		return;
	}
	service->counters.requests++;
	shape = parse_path(request);
	route = find_route(request, shape);
	if (route == NULL)
	{
		problem_set(&problem, STATUS_NOT_FOUND, "No method of this service is %s on this path.",
					request->method);
		request_reply_problem(request, &problem);
		return;
	}
	fault_request(service->faults, request, route->event, subscription_of(request, shape));
	if (request->effects.skip)
	{
		request_reply_empty(request);
		return;
	}
	if (!check_status(request, &problem) ||
		(service->tokens != NULL && !token_check(service->tokens, request, &problem)) ||
		!permission_check(request, route->permission, &problem) ||
		!check_size(request, route, &problem) || !check_name(request, shape, &problem) ||
		!check_exists(request, shape, &problem))
		request_reply_problem(request, &problem);
	else
		route->handle(request);
}
