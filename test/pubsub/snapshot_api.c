/* SPDX-License-Identifier: PostgreSQL */
#include <string.h>

#include "api.h"
#include "body.h"
#include "name.h"
#include "page.h"
#include "problem.h"
#include "request.h"
#include "service.h"
#include "settings.h"
#include "snapshot.h"
#include "subscription.h"

static bool
read_source(struct request *request, struct json_object *object, const char **source,
			struct json_object **labels, struct problem *problem)
{
	static const char *const names[] = {"subscription", "labels", "name", "tags", NULL};

	*source = "";
	if (snapshot_find(request->service, request->name) != NULL)
		return problem_set(problem, STATUS_ALREADY_EXISTS,
						   "Resource already exists in the project (resource=%s).",
						   name_id(request->name));
	if (!body_known(object, names, problem) ||
		!body_take_string(object, "subscription", source, problem) ||
		!name_check(*source, KIND_SUBSCRIPTION, problem))
		return false;
	if (subscription_find(request->service, *source) == NULL)
		return problem_set(problem, STATUS_NOT_FOUND, "Resource not found (resource=%s).",
						   name_id(*source));
	return settings_take_labels(object, labels, problem);
}

void
snapshot_create(struct request *request)
{
	struct json_object *object = request_object(request);
	struct json_object *labels = NULL;
	struct problem problem = {0};
	struct snapshot *snapshot;
	const char *source;

	if (object == NULL)
		return;
	if (read_source(request, object, &source, &labels, &problem))
	{
		snapshot = snapshot_new(request->service, request->name,
								subscription_find(request->service, source));
		snapshot->labels = labels;
		request_reply(request, snapshot_render(snapshot));
	}
	else
		request_reply_problem(request, &problem);
	json_object_put(object);
}

void
snapshot_get(struct request *request)
{
	request_reply(request, snapshot_render(snapshot_find(request->service, request->name)));
}

/* {"snapshot": {"labels": {…}}, "updateMask": "labels"} */
static bool
patch(struct snapshot *snapshot, struct json_object *object, struct problem *problem)
{
	static const char *const names[] = {"snapshot", "updateMask", NULL};
	struct json_object *changed = NULL;
	const char *mask = "";

	if (!body_known(object, names, problem) ||
		!body_take_object(object, "snapshot", &changed, problem) ||
		!body_take_string(object, "updateMask", &mask, problem))
		return false;
	if (changed == NULL || strcmp(mask, "labels") != 0)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "The request needs a snapshot and the updateMask \"labels\": nothing "
						   "else of a snapshot can be changed.");
	return settings_take_labels(changed, &snapshot->labels, problem);
}

void
snapshot_patch(struct request *request)
{
	struct snapshot *snapshot = snapshot_find(request->service, request->name);
	struct json_object *object = request_object(request);
	struct problem problem = {0};

	if (object == NULL)
		return;
	if (patch(snapshot, object, &problem))
		request_reply(request, snapshot_render(snapshot));
	else
		request_reply_problem(request, &problem);
	json_object_put(object);
}

void
snapshot_delete(struct request *request)
{
	snapshot_free(snapshot_find(request->service, request->name));
	request_reply_empty(request);
}

static struct json_object *
render_member(void *snapshot)
{
	return snapshot_render(snapshot);
}

void
snapshot_list(struct request *request)
{
	page_reply(request, request->service->snapshots, "snapshots", NULL, render_member);
}
