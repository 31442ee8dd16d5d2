/* SPDX-License-Identifier: PostgreSQL */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "body.h"
#include "buf.h"
#include "problem.h"

static const struct
{
	int http;
	const char *name;
} statuses[] = {
	[STATUS_OK] = {200, "OK"},
	[STATUS_CANCELLED] = {499, "CANCELLED"},
	[STATUS_UNKNOWN] = {500, "UNKNOWN"},
	[STATUS_INVALID_ARGUMENT] = {400, "INVALID_ARGUMENT"},
	[STATUS_DEADLINE_EXCEEDED] = {504, "DEADLINE_EXCEEDED"},
	[STATUS_NOT_FOUND] = {404, "NOT_FOUND"},
	[STATUS_ALREADY_EXISTS] = {409, "ALREADY_EXISTS"},
	[STATUS_PERMISSION_DENIED] = {403, "PERMISSION_DENIED"},
	[STATUS_RESOURCE_EXHAUSTED] = {429, "RESOURCE_EXHAUSTED"},
	[STATUS_FAILED_PRECONDITION] = {400, "FAILED_PRECONDITION"},
	[STATUS_ABORTED] = {409, "ABORTED"},
	[STATUS_OUT_OF_RANGE] = {400, "OUT_OF_RANGE"},
	[STATUS_UNIMPLEMENTED] = {501, "UNIMPLEMENTED"},
	[STATUS_INTERNAL] = {500, "INTERNAL"},
	[STATUS_UNAVAILABLE] = {503, "UNAVAILABLE"},
	[STATUS_DATA_LOSS] = {500, "DATA_LOSS"},
	[STATUS_UNAUTHENTICATED] = {401, "UNAUTHENTICATED"},
};

bool
problem_set(struct problem *problem, enum status status, const char *format, ...)
{
	va_list args;

	problem->status = status;
	va_start(args, format);
	vsnprintf(problem->text, sizeof(problem->text), format, args);
	va_end(args);
	return false;
}

void
problem_detail(struct problem *problem, const char *reason, const char *domain,
			   struct json_object *metadata)
{
	struct json_object *info = json_object_new_object();

	json_object_object_add(info, "@type",
						   json_object_new_string("type.googleapis.com/google.rpc.ErrorInfo"));
	json_object_object_add(info, "reason", json_object_new_string(reason));
	json_object_object_add(info, "domain", json_object_new_string(domain));
	if (metadata != NULL)
		json_object_object_add(info, "metadata", metadata);
	if (problem->details == NULL)
		problem->details = json_object_new_array();
	json_object_array_add(problem->details, info);
}

enum status
status_of_http(int http)
{
	static const enum status preferred[] = {
		STATUS_INVALID_ARGUMENT, STATUS_UNAUTHENTICATED,   STATUS_PERMISSION_DENIED,
		STATUS_NOT_FOUND,		 STATUS_ABORTED,		   STATUS_RESOURCE_EXHAUSTED,
		STATUS_CANCELLED,		 STATUS_INTERNAL,		   STATUS_UNIMPLEMENTED,
		STATUS_UNAVAILABLE,		 STATUS_DEADLINE_EXCEEDED,
	};

	for (size_t i = 0; i < sizeof(preferred) / sizeof(preferred[0]); i++)
	{
		if (statuses[preferred[i]].http == http)
			return preferred[i];
	}
	return STATUS_UNKNOWN;
}

int
problem_http(const struct problem *problem)
{
	return problem->http ? problem->http : statuses[problem->status].http;
}

void
problem_render(struct problem *problem, struct buf *out)
{
	struct json_object *error = json_object_new_object();
	struct json_object *document = json_object_new_object();

	json_object_object_add(error, "code", json_object_new_int(problem_http(problem)));
	json_object_object_add(error, "message", json_object_new_string(problem->text));
	json_object_object_add(error, "status", json_object_new_string(statuses[problem->status].name));
	if (problem->details != NULL)
		json_object_object_add(error, "details", problem->details);
	problem->details = NULL;
	json_object_object_add(document, "error", error);
	body_render(document, out);
	json_object_put(document);
}
