/* SPDX-License-Identifier: PostgreSQL */
#include <stdbool.h>
#include <stdlib.h>

#include <json-c/json.h>
#include <json-c/linkhash.h>

#include "entry.h"
#include "memory.h"
#include "message.h"
#include "moment.h"
#include "service.h"
#include "snapshot.h"
#include "subscription.h"
#include "timer.h"

#define LIFE (7 * 24 * 3600 * SECOND)

static size_t
entries_of(const struct subscription *subscription)
{
	return subscription->window_end - subscription->window_first;
}

/* Appends the messages of the subscription that are wanted; returns how many there are then. */
static size_t
collect(const struct subscription *subscription, struct message **messages, size_t count,
		bool acked_too)
{
	for (size_t i = subscription->window_first; i < subscription->window_end; i++)
	{
		struct entry *entry = subscription->entries[i];

		if (entry != NULL && (acked_too || entry->state != ENTRY_ACKED))
			messages[count++] = message_hold(entry->message);
	}
	return count;
}

struct snapshot *
snapshot_new(struct service *service, const char *name, const struct subscription *subscription)
{
	struct snapshot *snapshot = memory_get(sizeof(*snapshot));

	snapshot->service = service;
	snapshot->name = memory_copy(name);
	snapshot->topic = memory_copy(subscription->settings.topic);
	snapshot->messages = memory_get((entries_of(subscription) + 1) * sizeof(*snapshot->messages));
	snapshot->count = collect(subscription, snapshot->messages, 0, false);
	snapshot->last_message = service->last_message;
	snapshot->expires = moment_now() + LIFE;
	/* It lives at most a week from the oldest message it holds. */
	if (snapshot->count > 0)
		snapshot->expires = snapshot->messages[0]->published + LIFE;
	lh_table_insert(service->snapshots, snapshot->name, snapshot);
	return snapshot;
}

struct snapshot *
snapshot_find(struct service *service, const char *name)
{
	void *snapshot;

	return lh_table_lookup_ex(service->snapshots, name, &snapshot) ? snapshot : NULL;
}

static int
by_id(const void *a, const void *b)
{
	const struct message *left = *(struct message *const *) a;
	const struct message *right = *(struct message *const *) b;

	return left->id < right->id ? -1 : left->id > right->id;
}

static bool
unacknowledged(const struct snapshot *snapshot, struct message *message)
{
	return message->id > snapshot->last_message ||
		   bsearch(&message, snapshot->messages, snapshot->count, sizeof(message), by_id) != NULL;
}

/*
 * Lays the entries anew: the messages it has and those of the snapshot (NULL: seek to the moment),
 * by id. Messages that the snapshot kept may be gone from the subscription and lie between others.
 */
static void
lay_anew(struct subscription *subscription, const struct snapshot *snapshot, int64_t moment)
{
	size_t kept = snapshot == NULL ? 0 : snapshot->count;
	struct message **messages =
		memory_get((entries_of(subscription) + kept + 1) * sizeof(*messages));
	size_t count = collect(subscription, messages, 0, true);

	for (size_t i = 0; i < kept; i++)
		messages[count++] = message_hold(snapshot->messages[i]);
	qsort(messages, count, sizeof(*messages), by_id);
	subscription_clear(subscription);
	for (size_t i = 0; i < count; i++)
	{
		struct message *message = messages[i];
		bool wanted =
			snapshot == NULL ? message->published >= moment : unacknowledged(snapshot, message);

		if (i > 0 && messages[i - 1] == message)
			continue;
		if (wanted)
			subscription_restore(subscription_append(subscription, message));
		else if (subscription_retains(subscription))
			subscription_append(subscription, message);
	}
	for (size_t i = 0; i < count; i++)
		message_release(messages[i]);
	free(messages);
}

void
snapshot_restore(const struct snapshot *snapshot, struct subscription *subscription)
{
	lay_anew(subscription, snapshot, 0);
}

void
snapshot_seek(struct subscription *subscription, int64_t moment)
{
	lay_anew(subscription, NULL, moment);
}

struct json_object *
snapshot_render(const struct snapshot *snapshot)
{
	struct json_object *object = json_object_new_object();
	char expires[MOMENT_SIZE];

	moment_format(snapshot->expires, expires);
	json_object_object_add(object, "name", json_object_new_string(snapshot->name));
	json_object_object_add(object, "topic", json_object_new_string(snapshot->topic));
	json_object_object_add(object, "expireTime", json_object_new_string(expires));
	if (snapshot->labels != NULL)
		json_object_object_add(object, "labels", json_object_get(snapshot->labels));
	return object;
}

void
snapshot_free(struct snapshot *snapshot)
{
	lh_table_delete(snapshot->service->snapshots, snapshot->name);
	for (size_t i = 0; i < snapshot->count; i++)
		message_release(snapshot->messages[i]);
	free(snapshot->messages);
	json_object_put(snapshot->labels);
	free(snapshot->topic);
	free(snapshot->name);
	free(snapshot);
}
