/* SPDX-License-Identifier: PostgreSQL */
#include <microhttpd.h>
#include <string.h>

#include "body.h"
#include "problem.h"
#include "request.h"
#include "server.h"

const char *
request_query(const struct request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

struct json_object *
request_object(struct request *request)
{
	struct problem problem = {0};
	struct json_object *object = body_parse(request->body.data, request->body.len, &problem);

	if (object == NULL)
		request_reply_problem(request, &problem);
	return object;
}

/* Google's servers print for people unless asked not to. */
static bool
wants_compact(const struct request *request)
{
	const char *pretty = request_query(request, "prettyPrint");

	if (pretty == NULL)
		pretty = request_query(request, "$prettyPrint");
	return pretty != NULL && (strcmp(pretty, "false") == 0 || strcmp(pretty, "0") == 0);
}

static void
finish(struct request *request, int status, const char *content_type)
{
	request->status = status;
	request->content_type = content_type;
	request->answered = true;
	server_answer(request);
}

void
request_reply_text(struct request *request, int status, const char *content_type)
{
	finish(request, status, content_type);
}

static void
finish_json(struct request *request, int status)
{
	if (wants_compact(request))
		buf_compact_json(&request->answer, 0);
	finish(request, status, "application/json; charset=UTF-8");
}

void
request_reply(struct request *request, struct json_object *document)
{
	if (document != NULL)
	{
		body_render(document, &request->answer);
		json_object_put(document);
	}
	finish_json(request, 200);
}

void
request_reply_empty(struct request *request)
{
	buf_text(&request->answer, "{}\n");
	finish_json(request, 200);
}

void
request_reply_problem(struct request *request, struct problem *problem)
{
	request->answer.len = 0;
	problem_render(problem, &request->answer);
	finish_json(request, problem_http(problem));
}
