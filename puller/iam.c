/* SPDX-License-Identifier: PostgreSQL */
#include "iam.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "memory.h"

#define TOKEN_PATH "/computeMetadata/v1/instance/service-accounts/default/token"
#define SCOPE "https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fsqlservice.login"
#define TIMEOUT_MS 3000
#define ANSWER_LIMIT ((size_t) 64 * 1024)

struct question
{
	iam_callback callback;
	void *context;
};

static void
log_failure(const struct http_response *response, const char *reason)
{
	log_event(LOG_ERROR, "db_token_failed", "status", LOG_INT, (int64_t) response->status, "err",
			  LOG_TEXT, response->status == 0 ? response->error : reason, "hint", LOG_TEXT,
			  "--db-auth=gcp-iam needs the metadata server of Google Cloud (GCE_METADATA_HOST) and "
			  "a service account there; it is tried again by itself",
			  NULL);
}

static void
take_token(void *context, const struct http_response *response)
{
	struct question *question = context;
	struct json_object *document =
		response->status == 200 ? json_tokener_parse(response->body) : NULL;
	struct json_object *member;
	const char *token = NULL;

	if (json_object_object_get_ex(document, "access_token", &member) &&
		json_object_is_type(member, json_type_string) && json_object_get_string_len(member) > 0)
	{
		token = json_object_get_string(member);
	}
	else
	{
		log_failure(response, "the metadata server gave no access token");
	}
	question->callback(question->context, token);
	json_object_put(document);
	free(question);
}

void
iam_ask(struct http *http, iam_callback callback, void *context)
{
	const char *host = getenv("GCE_METADATA_HOST");
	char *url =
		memory_format("http://%s" TOKEN_PATH "?scopes=%s",
					  host != NULL && *host != '\0' ? host : "metadata.google.internal", SCOPE);
	struct question *question = memory_new(sizeof(*question));
	struct http_spec spec = {
		.method = "GET",
		.url = url,
		/* Without this header the metadata server refuses: it tells us from a relayed request. */
		.authorization = "Metadata-Flavor: Google",
		.direct = true,
		.response_limit = ANSWER_LIMIT,
		.timeout_ms = TIMEOUT_MS,
		.callback = take_token,
		.dropped = free,
		.context = question,
	};

	question->callback = callback;
	question->context = context;
	http_start(http, &spec);
	free(url);
}
