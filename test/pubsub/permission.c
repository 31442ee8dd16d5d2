/* SPDX-License-Identifier: PostgreSQL */
#include <string.h>

#include <json-c/json.h>

#include "body.h"
#include "permission.h"
#include "problem.h"
#include "request.h"
#include "service.h"

static bool
is_denied(const struct service *service, const char *permission)
{
	size_t count = service->denied == NULL ? 0 : json_object_array_length(service->denied);

	for (size_t i = 0; i < count; i++)
	{
		struct json_object *denied = json_object_array_get_idx(service->denied, i);

		if (strcmp(json_object_get_string(denied), permission) == 0)
			return true;
	}
	return false;
}

bool
permission_check(const struct request *request, const char *permission, struct problem *problem)
{
	struct json_object *metadata;

	if (permission == NULL || !is_denied(request->service, permission))
		return true;
	problem_set(problem, STATUS_PERMISSION_DENIED, "User not authorized to perform this action.");
	metadata = json_object_new_object();
	json_object_object_add(metadata, "permission", json_object_new_string(permission));
	json_object_object_add(metadata, "resource", json_object_new_string(request->name));
	problem_detail(problem, "IAM_PERMISSION_DENIED", "pubsub.googleapis.com", metadata);
	return false;
}

/* Takes a list of texts out of the body; NULL when it was answered with a problem. */
static struct json_object *
read_list(struct request *request, const char *name)
{
	const char *const names[] = {name, NULL};
	struct json_object *object = request_object(request);
	struct json_object *list = NULL;
	struct problem problem = {0};

	if (object == NULL)
		return NULL;
	if (body_known(object, names, &problem) && body_take_array(object, name, &list, &problem))
	{
		list = list != NULL ? json_object_get(list) : json_object_new_array();
		for (size_t i = 0; i < json_object_array_length(list); i++)
		{
			if (!json_object_is_type(json_object_array_get_idx(list, i), json_type_string))
				problem_set(&problem, STATUS_INVALID_ARGUMENT,
							"Invalid value at '%s': a permission is a string.", name);
		}
	}
	json_object_put(object);
	if (problem.status == STATUS_OK)
		return list;
	json_object_put(list);
	request_reply_problem(request, &problem);
	return NULL;
}

void
permission_test(struct request *request)
{
	struct json_object *asked = read_list(request, "permissions");
	struct json_object *answer;
	struct json_object *held;

	if (asked == NULL)
		return;
	answer = json_object_new_object();
	held = json_object_new_array();
	for (size_t i = 0; i < json_object_array_length(asked); i++)
	{
		struct json_object *permission = json_object_array_get_idx(asked, i);

		if (!is_denied(request->service, json_object_get_string(permission)))
			json_object_array_add(held, json_object_get(permission));
	}
	/* As everywhere, an empty list is left out. */
	if (json_object_array_length(held) > 0)
		json_object_object_add(answer, "permissions", json_object_get(held));
	json_object_put(held);
	json_object_put(asked);
	request_reply(request, answer);
}

void
permission_deny(struct request *request)
{
	struct json_object *denied = read_list(request, "denied");

	if (denied == NULL)
		return;
	json_object_put(request->service->denied);
	request->service->denied = denied;
	request_reply_empty(request);
}
