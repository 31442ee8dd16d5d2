/* SPDX-License-Identifier: PostgreSQL */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/linkhash.h>

#include "api.h"
#include "body.h"
#include "history.h"
#include "message.h"
#include "name.h"
#include "page.h"
#include "problem.h"
#include "request.h"
#include "service.h"
#include "snapshot.h"
#include "subscription.h"
#include "timer.h"
#include "topic.h"

#define MAX_PUBLISH 1000
#define MAX_PUBLISH_BYTES 10000000
#define DAY (24 * 3600 * SECOND)

static struct json_object *
render(const struct topic *topic)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "name", json_object_new_string(topic->name));
	if (topic->labels != NULL)
		json_object_object_add(object, "labels", json_object_get(topic->labels));
	if (topic->retention > 0)
		json_object_object_add(object, "messageRetentionDuration", body_duration(topic->retention));
	json_object_object_add(object, "state", json_object_new_string("ACTIVE"));
	return object;
}

static bool
take_retention(struct json_object *object, int64_t *retention, struct problem *problem)
{
	*retention = 0;
	if (!body_take_duration(object, "messageRetentionDuration", retention, problem))
		return false;
	if (*retention == 0 || (*retention >= 600 * SECOND && *retention <= 31 * DAY))
		return true;
	return problem_set(problem, STATUS_INVALID_ARGUMENT,
					   "Invalid messageRetentionDuration: it has to be between \"600s\" and "
					   "\"2678400s\" (31 days).");
}

static bool
read_topic(struct json_object *object, struct json_object **labels, int64_t *retention,
		   struct problem *problem)
{
	static const char *const names[] = {"name",	 "labels", "messageRetentionDuration",
										"state", "tags",   "messageStoragePolicy",
										NULL};

	return body_known(object, names, problem) && settings_take_labels(object, labels, problem) &&
		   take_retention(object, retention, problem);
}

void
topic_create(struct request *request)
{
	struct json_object *object = request_object(request);
	struct json_object *labels = NULL;
	struct problem problem = {0};
	int64_t retention = 0;
	struct topic *topic;

	if (object == NULL)
		return;
	if (topic_find(request->service, request->name) != NULL)
		problem_set(&problem, STATUS_ALREADY_EXISTS,
					"Resource already exists in the project (resource=%s).",
					name_id(request->name));
	else if (read_topic(object, &labels, &retention, &problem))
	{
		topic = topic_new(request->service, request->name);
		topic->labels = labels;
		topic->retention = retention;
		request_reply(request, render(topic));
	}
	if (problem.status != STATUS_OK)
	{
		json_object_put(labels);
		request_reply_problem(request, &problem);
	}
	json_object_put(object);
}

void
topic_get(struct request *request)
{
	request_reply(request, render(topic_find(request->service, request->name)));
}

/* {"topic": {…}, "updateMask": "labels,messageRetentionDuration"} */
static bool
patch(struct topic *topic, struct json_object *object, struct problem *problem)
{
	static const char *const names[] = {"topic", "updateMask", NULL};
	struct json_object *changed = NULL;
	struct json_object *labels = NULL;
	const char *mask = "";
	int64_t retention;
	bool has_labels;
	bool has_retention;

	if (!body_known(object, names, problem) ||
		!body_take_object(object, "topic", &changed, problem) ||
		!body_take_string(object, "updateMask", &mask, problem))
		return false;
	has_labels = strstr(mask, "labels") != NULL;
	has_retention = strstr(mask, "etention") != NULL;
	if (changed == NULL || (!has_labels && !has_retention))
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "The request needs a topic and an updateMask that names labels or "
						   "messageRetentionDuration.");
	if (!read_topic(changed, &labels, &retention, problem))
		return false;
	if (has_labels)
	{
		json_object_put(topic->labels);
		topic->labels = json_object_get(labels);
	}
	if (has_retention)
		topic->retention = retention;
	json_object_put(labels);
	return true;
}

void
topic_patch(struct request *request)
{
	struct topic *topic = topic_find(request->service, request->name);
	struct json_object *object = request_object(request);
	struct problem problem = {0};

	if (object == NULL)
		return;
	if (patch(topic, object, &problem))
		request_reply(request, render(topic));
	else
		request_reply_problem(request, &problem);
	json_object_put(object);
}

void
topic_delete(struct request *request)
{
	topic_free(topic_find(request->service, request->name));
	request_reply_empty(request);
}

static struct json_object *
render_member(void *topic)
{
	return render(topic);
}

void
topic_list(struct request *request)
{
	page_reply(request, request->service->topics, "topics", NULL, render_member);
}

static struct json_object *
name_if_of_topic(const char *name, const char *topic, const char *wanted)
{
	return strcmp(topic, wanted) == 0 ? json_object_new_string(name) : NULL;
}

static struct json_object *
subscription_name(void *subscription, const char *topic)
{
	const struct subscription *member = subscription;

	return name_if_of_topic(member->name, member->settings.topic, topic);
}

static struct json_object *
snapshot_name(void *snapshot, const char *topic)
{
	const struct snapshot *member = snapshot;

	return name_if_of_topic(member->name, member->topic, topic);
}

void
topic_list_subscriptions(struct request *request)
{
	page_reply(request, request->service->subscriptions, "subscriptions", subscription_name, NULL);
}

void
topic_list_snapshots(struct request *request)
{
	page_reply(request, request->service->snapshots, "snapshots", snapshot_name, NULL);
}

/* The messages of one request must share an ordering key, or have none. */
static bool
check_ordering_key(struct json_object *messages, const struct message_parts *parts,
				   struct problem *problem)
{
	struct json_object *first = json_object_array_get_idx(messages, 0);
	const char *key = "";

	if (!body_take_string(first, "orderingKey", &key, problem))
		return false;
	if (strcmp(key, parts->ordering_key == NULL ? "" : parts->ordering_key) == 0)
		return true;
	return problem_set(problem, STATUS_INVALID_ARGUMENT,
					   "All messages of a publish request must have the same ordering key.");
}

/* Reads message i; publishes it if there is a list of ids to add to. */
static bool
read_message(struct topic *topic, struct json_object *messages, size_t i, struct json_object *ids,
			 size_t *bytes, struct problem *problem)
{
	struct message_parts parts;
	struct message *message;
	char *owned;
	char id[24];
	bool good = message_read(json_object_array_get_idx(messages, i), &parts, &owned, problem) &&
				check_ordering_key(messages, &parts, problem);

	if (good && ids != NULL)
	{
		message = message_new(topic->service, &parts);
		snprintf(id, sizeof(id), "%llu", (unsigned long long) message->id);
		json_object_array_add(ids, json_object_new_string(id));
		topic->service->counters.published++;
		history_publish(topic->service->history, topic->name, message, NULL);
		topic_deliver(topic, message);
		message_release(message);
	}
	*bytes += parts.size;
	free(owned);
	return good;
}

/* Twice over the messages: all are checked before the first is published. */
static bool
publish(struct topic *topic, struct json_object *messages, struct json_object *ids,
		struct problem *problem)
{
	size_t count = messages == NULL ? 0 : json_object_array_length(messages);
	size_t bytes = 0;

	if (count == 0)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "The value for message_count is too small. You passed 0 in the request, "
						   "but the minimum value is 1.");
	if (count > MAX_PUBLISH)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "The value for message_count is too large. You passed %zu in the "
						   "request, but the maximum value is %d.",
						   count, MAX_PUBLISH);
	for (size_t i = 0; i < count; i++)
	{
		if (!read_message(topic, messages, i, NULL, &bytes, problem))
			return false;
	}
	if (bytes > MAX_PUBLISH_BYTES)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "The value for request_size is too large. You passed %zu in the "
						   "request, but the maximum value is %d.",
						   bytes, MAX_PUBLISH_BYTES);
	for (size_t i = 0; i < count; i++)
		read_message(topic, messages, i, ids, &bytes, problem);
	return true;
}

void
topic_publish(struct request *request)
{
	static const char *const names[] = {"messages", "topic", NULL};
	struct topic *topic = topic_find(request->service, request->name);
	struct json_object *object = request_object(request);
	struct json_object *messages = NULL;
	struct json_object *ids = json_object_new_array();
	struct problem problem = {0};
	struct json_object *answer;

	if (object != NULL)
	{
		if (body_known(object, names, &problem) &&
			body_take_array(object, "messages", &messages, &problem) &&
			publish(topic, messages, ids, &problem))
		{
			answer = json_object_new_object();
			json_object_object_add(answer, "messageIds", json_object_get(ids));
			request_reply(request, answer);
		}
		else
			request_reply_problem(request, &problem);
	}
	json_object_put(ids);
	json_object_put(object);
}
