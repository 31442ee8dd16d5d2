/* SPDX-License-Identifier: PostgreSQL */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "filter.h"
#include "memory.h"
#include "name.h"
#include "problem.h"
#include "settings.h"
#include "timer.h"

#define MINUTE (60 * SECOND)
#define DAY (24 * 60 * MINUTE)

typedef bool (*reader)(struct settings *, struct json_object *, struct problem *);

static bool
read_topic(struct settings *settings, struct json_object *object, struct problem *problem)
{
	const char *topic = "";

	if (!body_take_string(object, "topic", &topic, problem) ||
		!name_check(topic, KIND_TOPIC, problem))
		return false;
	free(settings->topic);
	settings->topic = memory_copy(topic);
	return true;
}

static bool
read_ack_deadline(struct settings *settings, struct json_object *object, struct problem *problem)
{
	int64_t seconds = 0;

	if (!body_take_int(object, "ackDeadlineSeconds", &seconds, problem))
		return false;
	if (seconds != 0 && (seconds < 10 || seconds > 600))
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Invalid ack deadline given (ack_deadline=%" PRId64
						   "). An ack deadline must be between 10 and 600 seconds.",
						   seconds);
	settings->ack_deadline = seconds ? seconds : 10;
	return true;
}

static bool
read_retain_acked(struct settings *settings, struct json_object *object, struct problem *problem)
{
	settings->retain_acked = false;
	return body_take_bool(object, "retainAckedMessages", &settings->retain_acked, problem);
}

static bool
read_retention(struct settings *settings, struct json_object *object, struct problem *problem)
{
	int64_t retention = 7 * DAY;

	if (!body_take_duration(object, "messageRetentionDuration", &retention, problem))
		return false;
	if (retention < 10 * MINUTE || retention > 31 * DAY)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Invalid messageRetentionDuration: it has to be between \"600s\" and "
						   "\"2678400s\" (31 days).");
	settings->retention = retention;
	return true;
}

bool
settings_take_labels(struct json_object *object, struct json_object **labels,
					 struct problem *problem)
{
	struct json_object *found = NULL;

	if (!body_take_object(object, "labels", &found, problem))
		return false;
	if (found != NULL)
	{
		json_object_object_foreach(found, name, value)
		{
			if (!json_object_is_type(value, json_type_string))
				return problem_set(problem, STATUS_INVALID_ARGUMENT,
								   "Invalid value at 'labels' (TYPE_STRING): label \"%.100s\" is "
								   "not a string.",
								   name);
		}
	}
	json_object_put(*labels);
	*labels = json_object_get(found);
	return true;
}

static bool
read_labels(struct settings *settings, struct json_object *object, struct problem *problem)
{
	return settings_take_labels(object, &settings->labels, problem);
}

static bool
read_ordering(struct settings *settings, struct json_object *object, struct problem *problem)
{
	return body_take_bool(object, "enableMessageOrdering", &settings->ordering, problem);
}

static bool
read_expiration(struct settings *settings, struct json_object *object, struct problem *problem)
{
	struct json_object *policy = NULL;
	int64_t ttl = 0;

	if (!body_take_object(object, "expirationPolicy", &policy, problem) ||
		(policy != NULL && !body_take_duration(policy, "ttl", &ttl, problem)))
		return false;
	if (ttl != 0 && ttl < DAY)
		return problem_set(
			problem, STATUS_INVALID_ARGUMENT,
			"Invalid expirationPolicy.ttl: it has to be at least \"86400s\" (a day), "
			"or absent for a subscription that never expires.");
	settings->expires_after = policy == NULL ? 31 * DAY : ttl;
	return true;
}

static bool
read_filter(struct settings *settings, struct json_object *object, struct problem *problem)
{
	const char *text = "";
	struct filter *filter;

	if (!body_take_string(object, "filter", &text, problem))
		return false;
	free(settings->filter);
	settings->filter = NULL;
	if (*text == '\0')
		return true;
	filter = filter_parse(text, problem);
	if (filter == NULL)
		return false;
	filter_free(filter);
	settings->filter = memory_copy(text);
	return true;
}

static bool
read_dead_letter(struct settings *settings, struct json_object *object, struct problem *problem)
{
	struct json_object *policy = NULL;
	const char *topic = "";
	int64_t attempts = 0;

	if (!body_take_object(object, "deadLetterPolicy", &policy, problem))
		return false;
	free(settings->dead_letter_topic);
	settings->dead_letter_topic = NULL;
	if (policy == NULL || json_object_object_length(policy) == 0)
		return true;
	if (!body_take_string(policy, "deadLetterTopic", &topic, problem) ||
		!name_check(topic, KIND_TOPIC, problem) ||
		!body_take_int(policy, "maxDeliveryAttempts", &attempts, problem))
		return false;
	if (attempts != 0 && (attempts < 5 || attempts > 100))
		return problem_set(
			problem, STATUS_OUT_OF_RANGE,
			"Invalid maxDeliveryAttempts (%" PRId64 "): it has to be between 5 and 100.", attempts);
	settings->dead_letter_topic = memory_copy(topic);
	settings->max_attempts = attempts ? attempts : 5;
	return true;
}

static bool
read_retry(struct settings *settings, struct json_object *object, struct problem *problem)
{
	struct json_object *policy = NULL;
	int64_t minimum = 10 * SECOND;
	int64_t maximum = 600 * SECOND;

	if (!body_take_object(object, "retryPolicy", &policy, problem))
		return false;
	settings->retries = policy != NULL;
	if (policy == NULL)
		return true;
	if (!body_take_duration(policy, "minimumBackoff", &minimum, problem) ||
		!body_take_duration(policy, "maximumBackoff", &maximum, problem))
		return false;
	if (minimum > 600 * SECOND || maximum > 600 * SECOND || minimum > maximum)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Invalid retryPolicy: minimumBackoff and maximumBackoff have to be "
						   "between \"0s\" and \"600s\", and the minimum not above the maximum.");
	settings->min_backoff = minimum;
	settings->max_backoff = maximum;
	return true;
}

static bool
read_exactly_once(struct settings *settings, struct json_object *object, struct problem *problem)
{
	settings->exactly_once = false;
	return body_take_bool(object, "enableExactlyOnceDelivery", &settings->exactly_once, problem);
}

/* Pull is the only way of delivery here; an empty pushConfig says just that. */
static bool
read_push(struct settings *settings, struct json_object *object, struct problem *problem)
{
	struct json_object *push = NULL;

	(void) settings;
	if (!body_take_object(object, "pushConfig", &push, problem))
		return false;
	if (push != NULL && body_member(push, "pushEndpoint") != NULL)
		return problem_set(problem, STATUS_UNIMPLEMENTED,
						   "This server delivers by pull only: leave pushConfig empty.");
	return true;
}

static const struct
{
	const char *name;
	reader read;
	bool mutable;
} fields[] = {
	{"topic", read_topic, false},
	{"ackDeadlineSeconds", read_ack_deadline, true},
	{"retainAckedMessages", read_retain_acked, true},
	{"messageRetentionDuration", read_retention, true},
	{"labels", read_labels, true},
	{"enableMessageOrdering", read_ordering, false},
	{"expirationPolicy", read_expiration, true},
	{"filter", read_filter, false},
	{"deadLetterPolicy", read_dead_letter, true},
	{"retryPolicy", read_retry, true},
	{"enableExactlyOnceDelivery", read_exactly_once, true},
	{"pushConfig", read_push, true},
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

/* Fields that a client may send back as it got them, and that change nothing. */
static bool
known_fields(struct json_object *object, struct problem *problem)
{
	const char *names[FIELDS + 6] = {"name", "state", "detached", "topicMessageRetentionDuration",
									 "tags"};

	for (size_t i = 0; i < FIELDS; i++)
		names[5 + i] = fields[i].name;
	return body_known(object, names, problem);
}

bool
settings_create(struct settings *settings, struct json_object *object, struct problem *problem)
{
	if (!known_fields(object, problem))
		return false;
	for (size_t i = 0; i < FIELDS; i++)
	{
		if (!fields[i].read(settings, object, problem))
			return false;
	}
	return true;
}

static bool
patch_field(struct settings *settings, struct json_object *object, const char *path,
			struct problem *problem)
{
	for (size_t i = 0; i < FIELDS; i++)
	{
		if (!body_same_name(path, fields[i].name))
			continue;
		if (fields[i].mutable)
			return fields[i].read(settings, object, problem);
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Invalid updateMask: the field %s of a subscription cannot be changed.",
						   path);
	}
	return problem_set(problem, STATUS_INVALID_ARGUMENT,
					   "Invalid updateMask: a subscription has no field %.100s.", path);
}

bool
settings_patch(struct settings *settings, struct json_object *object, const char *mask,
			   struct problem *problem)
{
	char *paths = memory_copy(mask);
	char *rest = paths;
	bool good = known_fields(object, problem);

	if (good && *mask == '\0')
		good = problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "The update_mask in the UpdateSubscriptionRequest must be set, and must "
						   "contain a non-empty paths list.");
	while (good && rest != NULL)
	{
		char *path = strsep(&rest, ",");

		good = patch_field(settings, object, path + strspn(path, " "), problem);
	}
	free(paths);
	return good;
}

static void
render_policies(const struct settings *settings, struct json_object *object)
{
	struct json_object *policy = json_object_new_object();

	if (settings->expires_after > 0)
		json_object_object_add(policy, "ttl", body_duration(settings->expires_after));
	json_object_object_add(object, "expirationPolicy", policy);
	if (settings->dead_letter_topic != NULL)
	{
		policy = json_object_new_object();
		json_object_object_add(policy, "deadLetterTopic",
							   json_object_new_string(settings->dead_letter_topic));
		json_object_object_add(policy, "maxDeliveryAttempts",
							   json_object_new_int64(settings->max_attempts));
		json_object_object_add(object, "deadLetterPolicy", policy);
	}
	if (settings->retries)
	{
		policy = json_object_new_object();
		json_object_object_add(policy, "minimumBackoff", body_duration(settings->min_backoff));
		json_object_object_add(policy, "maximumBackoff", body_duration(settings->max_backoff));
		json_object_object_add(object, "retryPolicy", policy);
	}
}

void
settings_render(const struct settings *settings, struct json_object *object)
{
	json_object_object_add(object, "pushConfig", json_object_new_object());
	json_object_object_add(object, "ackDeadlineSeconds",
						   json_object_new_int64(settings->ack_deadline));
	if (settings->retain_acked)
		json_object_object_add(object, "retainAckedMessages", json_object_new_boolean(true));
	json_object_object_add(object, "messageRetentionDuration", body_duration(settings->retention));
	if (settings->labels != NULL)
		json_object_object_add(object, "labels", json_object_get(settings->labels));
	if (settings->ordering)
		json_object_object_add(object, "enableMessageOrdering", json_object_new_boolean(true));
	if (settings->filter != NULL)
		json_object_object_add(object, "filter", json_object_new_string(settings->filter));
	render_policies(settings, object);
	if (settings->exactly_once)
		json_object_object_add(object, "enableExactlyOnceDelivery", json_object_new_boolean(true));
}

static char *
copy_text(const char *text)
{
	return text == NULL ? NULL : memory_copy(text);
}

void
settings_copy(struct settings *settings, const struct settings *from)
{
	*settings = *from;
	settings->topic = copy_text(from->topic);
	settings->labels = json_object_get(from->labels);
	settings->filter = copy_text(from->filter);
	settings->dead_letter_topic = copy_text(from->dead_letter_topic);
}

void
settings_free(struct settings *settings)
{
	free(settings->topic);
	json_object_put(settings->labels);
	free(settings->filter);
	free(settings->dead_letter_topic);
	memset(settings, 0, sizeof(*settings));
}
