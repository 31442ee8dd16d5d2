/* SPDX-License-Identifier: PostgreSQL */
#include "pubsub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_point.h"
#include "memory.h"
#include "refusal.h"

/* The service holds a pull for about 90 s; giving up earlier leaves messages leased to nobody. */
#define PULL_TIMEOUT_MS 120000
/* Short, because an acknowledgement can be sent again while the lease still runs. */
#define CALL_TIMEOUT_MS 10000
#define ANSWER_LIMIT ((size_t) 1024 * 1024)

struct call
{
	struct pubsub *pubsub;
	char *url;
	char *body;				/* NULL: a GET */
	const char *permission; /* that it takes on the subscription; NULL: another one */
	size_t response_limit;
	int64_t timeout_ms;
	unsigned token; /* the version it was sent with */
	bool tried_again;
	struct http_response refusal; /* the first 401, while a token is fetched */
	char *refusal_body;
	pubsub_callback callback;
	void *context;
};

static void send_call(struct call *call);

/* Ids may hold "%" and "+"; the slashes between them stay. */
static char *
encode_path(const char *name)
{
	char *encoded = memory_checked(curl_easy_escape(NULL, name, 0));
	char *path = memory_copy_text(encoded);
	char *out = path;

	for (const char *in = encoded; *in != '\0'; in++)
	{
		bool slash = strncmp(in, "%2F", 3) == 0;

		*out++ = slash ? '/' : *in;
		in += slash ? 2 : 0;
	}
	*out = '\0';
	curl_free(encoded);
	return path;
}

void
pubsub_init(struct pubsub *pubsub, struct http *http, struct auth *auth,
			const struct config *config)
{
	char *path = encode_path(config->subscription);

	*pubsub = (struct pubsub){.http = http, .auth = auth, .config = config};
	pubsub->url = memory_format("%s/v1/%s", config->endpoint, path);
	free(path);
}

void
pubsub_free(struct pubsub *pubsub)
{
	free(pubsub->url);
}

static void
free_call(struct call *call)
{
	free(call->url);
	free(call->body);
	free(call->refusal_body);
	free(call);
}

static void
judge(const struct call *call, const struct http_response *response, struct pubsub_answer *answer,
	  char *text)
{
	answer->status = response->status;
	answer->sent_ms = response->sent_ms;
	answer->first_byte_ms = response->first_byte_ms;
	refusal_set_pause(answer, (double) response->retry_after_ms / 1000);
	answer->error = text;
	if (response->too_large)
	{
		answer->outcome = PUBSUB_TOO_LARGE;
		snprintf(text, REFUSAL_TEXT_SIZE, "the response is larger than --max-response");
	}
	else if (response->status == 0 || FAULT_POINT("http-answered"))
	{
		answer->outcome = PUBSUB_TRANSIENT;
		snprintf(text, REFUSAL_TEXT_SIZE, "%s", response->error);
	}
	else if (response->status == 200 || response->status == 204)
	{
		answer->outcome = PUBSUB_OK;
		answer->error = NULL;
		answer->body = response->body;
		answer->size = response->size;
	}
	else
	{
		struct refusal_need need = {.permission = call->permission,
									.resource = call->pubsub->config->subscription,
									.token = auth_token(call->pubsub->auth)};

		refusal_read(answer, response, &need, text);
	}
}

static void
answer_call(struct call *call, const struct http_response *response)
{
	struct pubsub_answer answer = {0};
	char text[REFUSAL_TEXT_SIZE];

	judge(call, response, &answer, text);
	call->callback(call->context, &answer);
	json_object_put(answer.failures);
	free_call(call);
}

static void
drop_call(void *context)
{
	struct call *call = context;

	free(call->context);
	free_call(call);
}

static void
try_again(void *context, bool renewed)
{
	struct call *call = context;
	struct http_response response = call->refusal;

	if (renewed)
	{
		free(call->refusal_body);
		call->refusal_body = NULL;
		send_call(call);
		return;
	}
	response.body = call->refusal_body;
	answer_call(call, &response);
}

/* The answer is kept, as the token that it takes may not be had. */
static void
finish_call(void *context, const struct http_response *response)
{
	struct call *call = context;

	if (response->status != 401 || call->tried_again)
	{
		answer_call(call, response);
		return;
	}
	call->tried_again = true;
	call->refusal = *response;
	call->refusal_body = memory_copy(response->body, response->size);
	auth_refused(call->pubsub->auth, call->token, try_again, drop_call, call);
}

static void
send_call(struct call *call)
{
	const char *const headers[] = {auth_quota_header(call->pubsub->auth), NULL};
	struct http_spec spec = {
		.method = call->body != NULL ? "POST" : "GET",
		.url = call->url,
		.authorization = auth_header(call->pubsub->auth),
		.headers = headers,
		.body = call->body,
		.body_size = call->body != NULL ? strlen(call->body) : 0,
		.response_limit = call->response_limit,
		.timeout_ms = call->timeout_ms,
		.callback = finish_call,
		.dropped = drop_call,
		.context = call,
	};

	call->token = call->pubsub->auth->version;
	http_start(call->pubsub->http, &spec);
}

static struct call *
new_call(struct pubsub *pubsub, const char *verb, pubsub_callback callback, void *context)
{
	struct call *call = memory_new(sizeof(*call));

	call->pubsub = pubsub;
	call->url = memory_format("%s%s", pubsub->url, verb);
	call->response_limit = ANSWER_LIMIT;
	call->timeout_ms = CALL_TIMEOUT_MS;
	call->callback = callback;
	call->context = context;
	return call;
}

void
pubsub_pull(struct pubsub *pubsub, int max_messages, pubsub_callback callback, void *context)
{
	struct call *call = new_call(pubsub, ":pull", callback, context);

	call->permission = PUBSUB_CONSUME;
	call->body = memory_format("{\"maxMessages\":%d}", max_messages);
	call->response_limit = (size_t) pubsub->config->max_response;
	call->timeout_ms = PULL_TIMEOUT_MS;
	FAULT_URL("pull-send", call->url);
	send_call(call);
}

size_t
pubsub_id_size(const char *ack_id)
{
	return strlen(ack_id) + 3; /* two quotes and a comma */
}

static char *
write_ids(char *const *ack_ids, size_t count, const char *tail)
{
	struct json_object *ids = memory_checked(json_object_new_array_ext((int) count));
	char *body;

	for (size_t i = 0; i < count; i++)
	{
		json_object_array_add(ids, memory_checked(json_object_new_string(ack_ids[i])));
	}
	body = memory_format("{\"ackIds\":%s%s}",
						 json_object_to_json_string_ext(ids, JSON_C_TO_STRING_PLAIN |
																 JSON_C_TO_STRING_NOSLASHESCAPE),
						 tail);
	json_object_put(ids);
	return body;
}

void
pubsub_acknowledge(struct pubsub *pubsub, char *const *ack_ids, size_t count,
				   pubsub_callback callback, void *context)
{
	struct call *call = new_call(pubsub, ":acknowledge", callback, context);

	call->permission = PUBSUB_CONSUME;
	call->body = write_ids(ack_ids, count, "");
	FAULT_URL("ack-send", call->url);
	send_call(call);
}

void
pubsub_modify_ack_deadline(struct pubsub *pubsub, char *const *ack_ids, size_t count, int seconds,
						   pubsub_callback callback, void *context)
{
	struct call *call = new_call(pubsub, ":modifyAckDeadline", callback, context);
	char tail[64];

	call->permission = PUBSUB_CONSUME;
	snprintf(tail, sizeof(tail), ",\"ackDeadlineSeconds\":%d", seconds);
	call->body = write_ids(ack_ids, count, tail);
	FAULT_URL("modack-send", call->url);
	send_call(call);
}

void
pubsub_get_subscription(struct pubsub *pubsub, pubsub_callback callback, void *context)
{
	struct call *call = new_call(pubsub, "", callback, context);

	call->permission = "pubsub.subscriptions.get";
	send_call(call);
}

/* The service answers with those of the permissions that the account has. */
void
pubsub_test_permissions(struct pubsub *pubsub, pubsub_callback callback, void *context)
{
	struct call *call = new_call(pubsub, ":testIamPermissions", callback, context);

	call->body = memory_copy_text("{\"permissions\":[\"" PUBSUB_CONSUME "\"]}");
	send_call(call);
}

void
pubsub_seek(struct pubsub *pubsub, const char *time, pubsub_callback callback, void *context)
{
	struct call *call = new_call(pubsub, ":seek", callback, context);

	call->permission = PUBSUB_CONSUME;
	call->body = memory_format("{\"time\":\"%s\"}", time);
	send_call(call);
}

void
pubsub_list_subscriptions(struct pubsub *pubsub, const char *topic, pubsub_callback callback,
						  void *context)
{
	struct call *call = new_call(pubsub, "", callback, context);
	char *path = encode_path(topic);

	free(call->url);
	call->url = memory_format("%s/v1/%s/subscriptions", pubsub->config->endpoint, path);
	free(path);
	send_call(call);
}
