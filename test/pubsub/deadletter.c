/* SPDX-License-Identifier: PostgreSQL */
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "deadletter.h"
#include "entry.h"
#include "history.h"
#include "message.h"
#include "moment.h"
#include "name.h"
#include "service.h"
#include "subscription.h"
#include "topic.h"

#define SOURCE "CloudPubSubDeadLetterSource"

static struct json_object *
attributes_of(const struct entry *entry)
{
	struct json_object *attributes = NULL;
	const char *subscription = entry->subscription->name;
	char published[MOMENT_SIZE];
	char count[16];

	if (entry->message->attributes != NULL)
		json_object_deep_copy(entry->message->attributes, &attributes, NULL);
	else
		attributes = json_object_new_object();
	snprintf(count, sizeof(count), "%d", entry->failures);
	moment_format(entry->message->published, published);
	json_object_object_add(attributes, SOURCE "DeliveryCount", json_object_new_string(count));
	json_object_object_add(attributes, SOURCE "Subscription",
						   json_object_new_string(name_id(subscription)));
	json_object_object_add(attributes, SOURCE "SubscriptionProject",
						   json_object_new_string_len(subscription + strlen("projects/"),
													  (int) name_project_len(subscription)));
	json_object_object_add(attributes, SOURCE "TopicPublishTime",
						   json_object_new_string(published));
	return attributes;
}

bool
deadletter_forward(struct entry *entry)
{
	struct service *service = entry->subscription->service;
	struct topic *topic = topic_find(service, entry->subscription->settings.dead_letter_topic);
	struct message_parts parts = {0};
	struct message *message;

	if (topic == NULL)
		return false;
	parts.data = entry->message->json + entry->message->data_at;
	parts.data_len = entry->message->data_len;
	parts.attributes = attributes_of(entry);
	parts.ordering_key = entry->message->ordering_key;
	parts.size = entry->message->size;
	message = message_new(service, &parts);
	json_object_put(parts.attributes);
	service->counters.dead_lettered++;
	history_publish(service->history, topic->name, message, entry->subscription);
	topic_deliver(topic, message);
	message_release(message);
	return true;
}
