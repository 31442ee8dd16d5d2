/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>

#include <json-c/json.h>
#include <json-c/linkhash.h>

#include "memory.h"
#include "message.h"
#include "service.h"
#include "subscription.h"
#include "topic.h"

struct topic *
topic_new(struct service *service, const char *name)
{
	struct topic *topic = memory_get(sizeof(*topic));

	topic->service = service;
	topic->name = memory_copy(name);
	list_init(&topic->subscriptions);
	lh_table_insert(service->topics, topic->name, topic);
	return topic;
}

struct topic *
topic_find(struct service *service, const char *name)
{
	void *topic;

	return lh_table_lookup_ex(service->topics, name, &topic) ? topic : NULL;
}

static void
keep(struct topic *topic, struct message *message)
{
	if (topic->kept_end == topic->kept_room)
	{
		topic->kept_room = topic->kept_room ? 2 * topic->kept_room : 64;
		topic->kept = memory_resize(topic->kept, topic->kept_room * sizeof(*topic->kept));
	}
	topic->kept[topic->kept_end++] = message_hold(message);
}

void
topic_deliver(struct topic *topic, struct message *message)
{
	if (topic->retention > 0)
		keep(topic, message);
	for (struct link *link = topic->subscriptions.next; link != &topic->subscriptions;
		 link = link->next)
		subscription_accept(OWNER(link, struct subscription, in_topic), message);
}

void
topic_trim(struct topic *topic, int64_t now)
{
	while (topic->kept_first < topic->kept_end &&
		   topic->kept[topic->kept_first]->published < now - topic->retention)
		message_release(topic->kept[topic->kept_first++]);
}

void
topic_free(struct topic *topic)
{
	while (!list_empty(&topic->subscriptions))
		subscription_lose_topic(OWNER(topic->subscriptions.next, struct subscription, in_topic));
	lh_table_delete(topic->service->topics, topic->name);
	topic_trim(topic, INT64_MAX);
	free(topic->kept);
	json_object_put(topic->labels);
	free(topic->name);
	free(topic);
}
