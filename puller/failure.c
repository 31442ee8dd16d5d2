/* SPDX-License-Identifier: PostgreSQL */
#include "failure.h"

#include <json-c/json.h>
#include <stdlib.h>

#include "memory.h"
#include "timestamp.h"
#include "trace.h"

/* A longer value of a line is cut anyhow. */
#define PAYLOAD_MAX 1024

void
failure_of_answer(struct failure *failure, const struct db_answer *answer)
{
	failure_free(failure);
	*failure = (struct failure){
		.sqlstate = memory_copy_text(answer->sqlstate),
		.error = memory_copy_text(answer->message),
		.detail = memory_copy_text(answer->detail),
		.hint = memory_copy_text(answer->hint),
		.context = memory_copy_text(answer->context),
		.reason = "handler",
	};
}

void
failure_of_defect(struct failure *failure, const struct message *message)
{
	failure_free(failure);
	failure->error = memory_copy_text(message->defect_detail);
	failure->reason = message_defect_name(message->defect);
}

static const char *
find_attribute(struct json_object *attributes, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(attributes, name, &value) ? json_object_get_string(value)
															   : "unknown";
}

void
failure_of_native(struct failure *failure, const struct message *message)
{
	struct json_object *attributes =
		json_tokener_parse(message->attributes != NULL ? message->attributes : "{}");

	failure_free(failure);
	failure->error = memory_format(
		"dead-lettered by Pub/Sub after %s deliveries of subscription %s in project %s",
		find_attribute(attributes, "CloudPubSubDeadLetterSourceDeliveryCount"),
		find_attribute(attributes, "CloudPubSubDeadLetterSourceSubscription"),
		find_attribute(attributes, "CloudPubSubDeadLetterSourceSubscriptionProject"));
	failure->reason = "native_dead_letter";
	json_object_put(attributes);
}

void
failure_of_suspect(struct failure *failure)
{
	failure_free(failure);
	failure->sqlstate = memory_copy_text("IX006");
	failure->error =
		memory_copy_text("the connection to the server was lost while the message ran");
	failure->hint = memory_copy_text("if it is lost each time, look for a crash of the backend in "
									 "the server's log");
	failure->reason = "handler";
}

void
failure_free(struct failure *failure)
{
	free(failure->sqlstate);
	free(failure->error);
	free(failure->detail);
	free(failure->hint);
	free(failure->context);
	*failure = (struct failure){0};
}

/* As much of it as a line takes. A NUL would end the text: it is shown as what is no character. */
static char *
payload_text(const struct message *message)
{
	size_t size = message->data_size < PAYLOAD_MAX ? message->data_size : PAYLOAD_MAX;
	char *text;

	if (message->data == NULL)
	{
		return NULL;
	}
	text = memory_copy((const char *) message->data, size);
	for (size_t i = 0; i < size; i++)
	{
		text[i] = (char) (text[i] != '\0' ? text[i] : '\xFF');
	}
	return text;
}

void
failure_log(const struct puller *puller, const struct message *message,
			const struct failure *failure, enum log_level level, const char *event,
			const struct failure_outcome *outcome)
{
	char publish_time[TIMESTAMP_SIZE];
	char trace[TRACE_SIZE];
	char *payload = puller->config->log_payloads ? payload_text(message) : NULL;

	log_event(level, event, "verdict", LOG_TEXT, outcome->verdict, "source", LOG_TEXT,
			  puller->config->source, "key", LOG_TEXT, message->key, "message_id", LOG_TEXT,
			  message->message_id, "publish_time", LOG_TEXT,
			  timestamp_format(message->publish_time, publish_time), "delivery_attempt", LOG_COUNT,
			  (int64_t) message->delivery_attempt, "ordering_key", LOG_TEXT, message->ordering_key,
			  "traceparent", LOG_TEXT, trace_find(message->attributes, trace), "reason", LOG_TEXT,
			  failure->reason, "attempt", LOG_INT, outcome->attempt, "sqlstate", LOG_TEXT,
			  failure->sqlstate, "err", LOG_TEXT, failure->error, "hint", LOG_TEXT,
			  outcome->hint != NULL ? outcome->hint : failure->hint, "payload", LOG_TEXT, payload,
			  outcome->pause_ms >= 0 ? "retry_in" : NULL, LOG_SECONDS, outcome->pause_ms, NULL);
	free(payload);
}
