/* SPDX-License-Identifier: PostgreSQL */
#include "failure.h"

#include <json-c/json.h>
#include <stdlib.h>

#include "memory.h"
#include "timestamp.h"

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

void
failure_log(const struct puller *puller, const struct message *message,
			const struct failure *failure, enum log_level level, const char *event,
			const struct failure_outcome *outcome)
{
	char publish_time[TIMESTAMP_SIZE];

	log_event(level, event, "verdict", LOG_TEXT, outcome->verdict, "source", LOG_TEXT,
			  puller->config->source, "key", LOG_TEXT, message->key, "message_id", LOG_TEXT,
			  message->message_id, "publish_time", LOG_TEXT,
			  timestamp_format(message->publish_time, publish_time), "delivery_attempt", LOG_COUNT,
			  (int64_t) message->delivery_attempt, "ordering_key", LOG_TEXT, message->ordering_key,
			  "reason", LOG_TEXT, failure->reason, "attempt", LOG_INT, outcome->attempt, "sqlstate",
			  LOG_TEXT, failure->sqlstate, "err", LOG_TEXT, failure->error, "hint", LOG_TEXT,
			  outcome->hint != NULL ? outcome->hint : failure->hint,
			  outcome->pause_ms >= 0 ? "retry_in" : NULL, LOG_SECONDS, outcome->pause_ms, NULL);
}
