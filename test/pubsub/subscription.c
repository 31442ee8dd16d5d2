/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>
#include <json-c/linkhash.h>

#include "body.h"
#include "filter.h"
#include "memory.h"
#include "message.h"
#include "name.h"
#include "order.h"
#include "problem.h"
#include "service.h"
#include "subscription.h"
#include "topic.h"

static bool
passes(const struct subscription *subscription, const struct message *message)
{
	return subscription->filter == NULL || filter_match(subscription->filter, message->attributes);
}

struct subscription *
subscription_new(struct service *service, const char *name, struct settings *settings)
{
	struct subscription *subscription = memory_get(sizeof(*subscription));
	struct problem problem = {0};

	subscription->service = service;
	subscription->name = memory_copy(name);
	subscription->number = ++service->last_subscription;
	subscription->settings = *settings;
	if (settings->filter != NULL)
		subscription->filter = filter_parse(settings->filter, &problem);
	subscription->topic = topic_find(service, settings->topic);
	list_append(&subscription->topic->subscriptions, &subscription->in_topic);
	list_init(&subscription->ready);
	list_init(&subscription->waiting);
	subscription->orders = order_table_new();
	lh_table_insert(service->subscriptions, subscription->name, subscription);
	for (size_t i = subscription->topic->kept_first; i < subscription->topic->kept_end; i++)
	{
		if (passes(subscription, subscription->topic->kept[i]))
			subscription_append(subscription, subscription->topic->kept[i]);
	}
	return subscription;
}

struct subscription *
subscription_find(struct service *service, const char *name)
{
	void *subscription;

	return lh_table_lookup_ex(service->subscriptions, name, &subscription) ? subscription : NULL;
}

void
subscription_change(struct subscription *subscription, struct settings *settings)
{
	settings_free(&subscription->settings);
	subscription->settings = *settings;
}

/* Moves the window to the front of the array, or makes the array larger, when it is at the end. */
static void
make_room(struct subscription *subscription)
{
	size_t used = subscription->window_end - subscription->window_first;

	if (subscription->window_end < subscription->window_room)
		return;
	if (used >= subscription->window_room / 2)
	{
		subscription->window_room = subscription->window_room ? 2 * subscription->window_room : 64;
		subscription->entries = memory_resize(
			subscription->entries, subscription->window_room * sizeof(*subscription->entries));
	}
	memmove(subscription->entries, subscription->entries + subscription->window_first,
			used * sizeof(*subscription->entries));
	subscription->window_first = 0;
	subscription->window_end = used;
}

struct entry *
subscription_append(struct subscription *subscription, struct message *message)
{
	struct entry *entry = memory_get(sizeof(*entry));

	make_room(subscription);
	entry->subscription = subscription;
	entry->message = message_hold(message);
	entry->position =
		subscription->first_position + (subscription->window_end - subscription->window_first);
	entry->state = ENTRY_ACKED;
	subscription->count[ENTRY_ACKED]++;
	subscription->entries[subscription->window_end++] = entry;
	return entry;
}

struct entry *
subscription_entry(struct subscription *subscription, uint64_t position)
{
	size_t used = subscription->window_end - subscription->window_first;

	if (position < subscription->first_position || position - subscription->first_position >= used)
		return NULL;
	return subscription
		->entries[subscription->window_first + (position - subscription->first_position)];
}

void
subscription_drop(struct entry *entry)
{
	struct subscription *subscription = entry->subscription;
	size_t index = subscription->window_first + (entry->position - subscription->first_position);

	order_leave(entry);
	link_remove(&entry->ready);
	timer_cancel(&subscription->service->timers, &entry->timer);
	subscription->count[entry->state]--;
	message_release(entry->message);
	free(entry);
	subscription->entries[index] = NULL;
	while (subscription->window_first < subscription->window_end &&
		   subscription->entries[subscription->window_first] == NULL)
	{
		subscription->window_first++;
		subscription->first_position++;
	}
}

void
subscription_accept(struct subscription *subscription, struct message *message)
{
	if (!subscription->detached && passes(subscription, message))
		subscription_restore(subscription_append(subscription, message));
}

void
subscription_restore(struct entry *entry)
{
	if (!entry->subscription->settings.ordering || entry->message->ordering_key == NULL)
	{
		entry_set_state(entry, ENTRY_READY, 0);
		return;
	}
	order_append(entry);
	entry_set_state(entry, ENTRY_WAITING, 0);
	order_advance(entry->order);
}

void
subscription_lose_topic(struct subscription *subscription)
{
	link_remove(&subscription->in_topic);
	subscription->topic = NULL;
	free(subscription->settings.topic);
	subscription->settings.topic = memory_copy(NAME_DELETED_TOPIC);
}

bool
subscription_retains(const struct subscription *subscription)
{
	return subscription->settings.retain_acked ||
		   (subscription->topic != NULL && subscription->topic->retention > 0);
}

void
subscription_trim(struct subscription *subscription, int64_t now)
{
	int64_t retention = subscription->settings.retention;

	if (subscription->topic != NULL && subscription->topic->retention > retention)
		retention = subscription->topic->retention;
	while (subscription->window_first < subscription->window_end)
	{
		struct entry *entry = subscription->entries[subscription->window_first];
		struct order *order = entry->order;

		if (entry->message->published >= now - retention)
			break;
		subscription_drop(entry);
		if (order != NULL)
			order_advance(order);
	}
}

void
subscription_wake(struct subscription *subscription)
{
	if (!link_used(&subscription->hungry) && !list_empty(&subscription->waiting))
		list_append(&subscription->service->hungry, &subscription->hungry);
}

struct json_object *
subscription_render(struct subscription *subscription)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "name", json_object_new_string(subscription->name));
	json_object_object_add(object, "topic", json_object_new_string(subscription->settings.topic));
	settings_render(&subscription->settings, object);
	if (subscription->detached)
		json_object_object_add(object, "detached", json_object_new_boolean(true));
	if (subscription->topic != NULL && subscription->topic->retention > 0)
		json_object_object_add(object, "topicMessageRetentionDuration",
							   body_duration(subscription->topic->retention));
	json_object_object_add(object, "state", json_object_new_string("ACTIVE"));
	return object;
}

void
subscription_clear(struct subscription *subscription)
{
	for (size_t i = subscription->window_first; i < subscription->window_end; i++)
	{
		if (subscription->entries[i] != NULL)
			subscription_drop(subscription->entries[i]);
	}
	subscription->first_position += subscription->window_end - subscription->window_first;
	subscription->window_first = subscription->window_end = 0;
}

void
subscription_free(struct subscription *subscription)
{
	lh_table_delete(subscription->service->subscriptions, subscription->name);
	subscription_clear(subscription);
	while (!list_empty(&subscription->waiting))
		link_remove(subscription->waiting.next);
	link_remove(&subscription->hungry);
	link_remove(&subscription->in_topic);
	free(subscription->entries);
	order_table_free(subscription->orders);
	filter_free(subscription->filter);
	settings_free(&subscription->settings);
	free(subscription->name);
	free(subscription);
}
