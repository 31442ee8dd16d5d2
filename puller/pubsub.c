/* SPDX-License-Identifier: PostgreSQL */
#include "pubsub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_point.h"
#include "memory.h"

/* The service holds a pull for about 90 s; giving up earlier leaves messages leased to nobody. */
#define PULL_TIMEOUT_MS 120000
/* Short, because an acknowledgement can be sent again while the lease still runs. */
#define CALL_TIMEOUT_MS 10000
#define ANSWER_LIMIT ((size_t) 1024 * 1024)
#define ERROR_SIZE 512
/* However long the service or a proxy wants to be left alone, it is looked at again after this. */
#define RETRY_AFTER_MAX_MS INT64_C(600000)

struct call
{
	struct pubsub *pubsub;
	char *url;
	char *body; /* NULL: a GET */
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
	char *encoded = curl_easy_escape(NULL, name, 0);
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

/* The member of an object as text, or NULL. */
static const char *
text_member(struct json_object *object, const char *name)
{
	struct json_object *member;

	return json_object_object_get_ex(object, name, &member) &&
				   json_object_is_type(member, json_type_string)
			   ? json_object_get_string(member)
			   : NULL;
}

/*
 * Merges the metadata of every ErrorInfo about ack ids: the service may send several. Others, as
 * those of a 403, have metadata too, and an ack id missing there has not succeeded.
 */
static void
merge_failures(struct pubsub_answer *answer, struct json_object *detail)
{
	struct json_object *metadata;
	const char *reason = text_member(detail, "reason");

	if (reason == NULL || strcmp(reason, "EXACTLY_ONCE_ACKID_FAILURE") != 0 ||
		!json_object_object_get_ex(detail, "metadata", &metadata) ||
		!json_object_is_type(metadata, json_type_object))
	{
		return;
	}
	json_object_object_foreach(metadata, ack_id, failure)
	{
		if (answer->failures == NULL)
		{
			answer->failures = json_object_new_object();
		}
		/* Whatever is not a text is no reason either, and the id has failed. */
		json_object_object_add(answer->failures, ack_id,
							   json_object_is_type(failure, json_type_string)
								   ? json_object_get(failure)
								   : json_object_new_string(""));
	}
}

static void
set_retry_after(struct pubsub_answer *answer, double seconds)
{
	/* Not a number is not within any limits. */
	answer->retry_after_ms = seconds >= 0 && seconds * 1000 < (double) RETRY_AFTER_MAX_MS
								 ? (int64_t) (seconds * 1000)
								 : RETRY_AFTER_MAX_MS;
}

static void
read_retry_delay(struct pubsub_answer *answer, struct json_object *detail)
{
	const char *delay = text_member(detail, "retryDelay");

	if (delay != NULL)
	{
		set_retry_after(answer, strtod(delay, NULL));
	}
}

static void
read_details(struct pubsub_answer *answer, struct json_object *error)
{
	struct json_object *details;

	if (!json_object_object_get_ex(error, "details", &details) ||
		!json_object_is_type(details, json_type_array))
	{
		return;
	}
	for (size_t i = 0; i < json_object_array_length(details); i++)
	{
		struct json_object *detail = json_object_array_get_idx(details, i);

		if (json_object_is_type(detail, json_type_object))
		{
			merge_failures(answer, detail);
			read_retry_delay(answer, detail);
		}
	}
}

static enum pubsub_outcome
outcome_of_status(long status, const char *canonical)
{
	switch (status)
	{
		case 401:
			return PUBSUB_UNAUTHENTICATED;
		case 403:
			return PUBSUB_FORBIDDEN;
		case 404:
			return PUBSUB_NOT_FOUND;
		case 400:
			return canonical != NULL && strcmp(canonical, "FAILED_PRECONDITION") == 0
					   ? PUBSUB_PRECONDITION
					   : PUBSUB_INVALID;
		default:
			/* Redirects and 2xx without sense come from something in between: it passes. */
			return PUBSUB_TRANSIENT;
	}
}

/* Reads the service's error document; proxies answer with pages instead, which say nothing. */
static void
read_error(struct pubsub_answer *answer, const struct http_response *response, char *text)
{
	struct json_object *document = json_tokener_parse(response->body);
	struct json_object *error = NULL;
	const char *canonical = NULL;
	const char *message = NULL;

	if (document != NULL && json_object_is_type(document, json_type_object) &&
		json_object_object_get_ex(document, "error", &error) &&
		json_object_is_type(error, json_type_object))
	{
		canonical = text_member(error, "status");
		message = text_member(error, "message");
		read_details(answer, error);
	}
	answer->outcome = outcome_of_status(response->status, canonical);
	snprintf(text, ERROR_SIZE, "HTTP %ld%s%s%s%s", response->status, canonical ? " " : "",
			 canonical ? canonical : "", message && *message ? ": " : "", message ? message : "");
	json_object_put(document);
}

static void
judge(struct pubsub_answer *answer, const struct http_response *response, char *text)
{
	answer->status = response->status;
	answer->sent_ms = response->sent_ms;
	answer->first_byte_ms = response->first_byte_ms;
	set_retry_after(answer, (double) response->retry_after_ms / 1000);
	answer->error = text;
	if (response->too_large)
	{
		answer->outcome = PUBSUB_TOO_LARGE;
		snprintf(text, ERROR_SIZE, "the response is larger than --max-response");
	}
	else if (response->status == 0 || FAULT_POINT("http-answered"))
	{
		answer->outcome = PUBSUB_TRANSIENT;
		snprintf(text, ERROR_SIZE, "%s", response->error);
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
		read_error(answer, response, text);
	}
}

static void
answer_call(struct call *call, const struct http_response *response)
{
	struct pubsub_answer answer = {0};
	char text[ERROR_SIZE];

	judge(&answer, response, text);
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
	struct json_object *ids = json_object_new_array_ext((int) count);
	char *body;

	for (size_t i = 0; i < count; i++)
	{
		json_object_array_add(ids, json_object_new_string(ack_ids[i]));
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

	snprintf(tail, sizeof(tail), ",\"ackDeadlineSeconds\":%d", seconds);
	call->body = write_ids(ack_ids, count, tail);
	FAULT_URL("modack-send", call->url);
	send_call(call);
}

void
pubsub_get_subscription(struct pubsub *pubsub, pubsub_callback callback, void *context)
{
	send_call(new_call(pubsub, "", callback, context));
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
