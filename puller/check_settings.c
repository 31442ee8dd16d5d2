/* SPDX-License-Identifier: PostgreSQL */
#include "check_settings.h"

#include <stdlib.h>
#include <string.h>

#include "lease.h"
#include "memory.h"

#define SECOND INT64_C(1000)
#define DAY (SECOND * 3600 * 24)
/* What Pub/Sub takes where a subscription was made without a value. */
#define DEFAULT_DEADLINE_S 10
#define DEFAULT_RETENTION (7 * DAY)
#define DEFAULT_EXPIRATION (31 * DAY)
/* A longer first lease does nothing but keep what a killed puller held. */
#define DEADLINE_ENOUGH_S 60

/* ---- members of the document ---------------------------------------------------------------- */

static struct json_object *
member(struct json_object *object, const char *name, json_type type)
{
	struct json_object *found;

	return object != NULL && json_object_object_get_ex(object, name, &found) &&
				   json_object_is_type(found, type)
			   ? found
			   : NULL;
}

struct json_object *
check_settings_object(struct json_object *object, const char *name)
{
	return member(object, name, json_type_object);
}

const char *
check_settings_text(struct json_object *object, const char *name)
{
	struct json_object *text = member(object, name, json_type_string);

	return text != NULL && json_object_get_string_len(text) > 0 ? json_object_get_string(text)
																: NULL;
}

long long
check_settings_number(struct json_object *object, const char *name, long long initial)
{
	struct json_object *number = member(object, name, json_type_int);

	return number != NULL ? json_object_get_int64(number) : initial;
}

static bool
is_set(struct json_object *object, const char *name)
{
	return json_object_get_boolean(member(object, name, json_type_boolean)) != 0;
}

/* A duration such as "604800s" or "1.500s", in milliseconds. */
static int64_t
duration(struct json_object *object, const char *name, int64_t initial)
{
	const char *text = check_settings_text(object, name);

	return text != NULL ? (int64_t) (strtod(text, NULL) * 1000) : initial;
}

static char *
update_remedy(const struct check *check, const char *flags)
{
	return memory_format("gcloud pubsub subscriptions update %s %s", check->config->subscription,
						 flags);
}

/* ---- can it be pulled from ------------------------------------------------------------------ */

static const char *
find_export(struct json_object *subscription)
{
	static const char *const exports[] = {"bigqueryConfig", "bigtableConfig", "cloudStorageConfig"};

	if (check_settings_text(check_settings_object(subscription, "pushConfig"), "pushEndpoint"))
	{
		return "pushConfig";
	}
	for (size_t i = 0; i < sizeof(exports) / sizeof(exports[0]); i++)
	{
		struct json_object *config = check_settings_object(subscription, exports[i]);

		if (config != NULL && json_object_object_length(config) > 0)
		{
			return exports[i];
		}
	}
	return NULL;
}

static void
check_delivery(struct check *check, struct json_object *subscription)
{
	struct check_report *report = &check->report;
	const char *name = check->config->subscription;
	const char *export = find_export(subscription);
	const char *state = check_settings_text(subscription, "state");

	if (is_set(subscription, "detached"))
	{
		check_report_problem(report, "subscription",
							 memory_format("%s is detached from its topic: it gets nothing", name),
							 memory_copy_text("make another subscription, and consume it with "
											  "--source and --take-over"));
	}
	else if (export != NULL)
	{
		check_report_problem(
			report, "subscription",
			memory_format("%s delivers by itself (%s) and cannot be pulled from", name, export),
			memory_copy_text("make a pull subscription to the same topic"));
	}
	else if (state != NULL && strcmp(state, "ACTIVE") != 0)
	{
		check_report_problem(report, "subscription",
							 memory_format("%s is in the state %s", name, state),
							 memory_copy_text("see it in the Cloud console"));
	}
	else
	{
		check_report_ok(report, "subscription", memory_format("%s can be read", name));
	}
}

static void
check_topic(struct check *check, struct json_object *subscription)
{
	const char *topic = check_settings_text(subscription, "topic");

	if (topic == NULL || strcmp(topic, "_deleted-topic_") == 0)
	{
		check_report_problem(&check->report, "topic",
							 memory_copy_text("it was deleted: only what is left is delivered"),
							 memory_copy_text("make the topic and a subscription to it again, and "
											  "consume that with this --source and --take-over"));
		return;
	}
	check_report_ok(&check->report, "topic", memory_copy_text(topic));
}

/* ---- how it delivers ------------------------------------------------------------------------ */

static void
check_deadline(struct check *check, struct json_object *subscription)
{
	long long seconds =
		check_settings_number(subscription, "ackDeadlineSeconds", DEFAULT_DEADLINE_S);
	char *handler = check_time(check->config->handler_timeout);
	char *extension = check_time(LEASE_EXTENSION_MS);

	if (seconds <= DEADLINE_ENOUGH_S)
	{
		check_report_ok(&check->report, "ack deadline",
						memory_format("%lld s, extended by %s at a time; a statement ends after %s",
									  seconds, extension, handler));
	}
	else
	{
		check_report_note(&check->report, "ack deadline",
						  memory_format("%lld s: so long does what a killed puller held stay away; "
										"%d s is enough, as leases are extended",
										seconds, DEADLINE_ENOUGH_S));
	}
	free(handler);
	free(extension);
}

static void
check_order(struct check *check, struct json_object *subscription)
{
	check_report_ok(&check->report, "ordering",
					memory_copy_text(is_set(subscription, "enableMessageOrdering")
										 ? "on: by ordering key"
										 : "off: messages come in any order"));
	check_report_ok(&check->report, "exactly-once",
					memory_copy_text(is_set(subscription, "enableExactlyOnceDelivery")
										 ? "on: within one region, by a regional --endpoint from "
										   "outside of Google Cloud"
										 : "off: the keys see to it"));
}

static void
check_filter(struct check *check, struct json_object *subscription)
{
	const char *filter = check_settings_text(subscription, "filter");

	if (filter == NULL)
	{
		check_report_ok(&check->report, "filter", memory_copy_text("none"));
		return;
	}
	check_report_note(&check->report, "filter",
					  memory_format("%s: what does not match is never delivered", filter));
}

static void
check_retry_policy(struct check *check, struct json_object *subscription)
{
	struct json_object *policy = check_settings_object(subscription, "retryPolicy");
	char *least = check_time(duration(policy, "minimumBackoff", 10 * SECOND));
	char *most = check_time(duration(policy, "maximumBackoff", 600 * SECOND));

	check_report_ok(
		&check->report, "retry policy",
		policy != NULL ? memory_format("what is given back comes again after %s to %s", least, most)
					   : memory_copy_text("what is given back comes again at once; the puller "
										  "paces its own retries"));
	free(least);
	free(most);
}

/* ---- what it keeps -------------------------------------------------------------------------- */

static void
check_expiration(struct check *check, struct json_object *subscription)
{
	struct json_object *policy = check_settings_object(subscription, "expirationPolicy");
	int64_t ttl = duration(policy, "ttl", policy != NULL ? 0 : DEFAULT_EXPIRATION);
	char *time = check_time(ttl);

	if (policy == NULL && check->config->emulator)
	{
		check_report_note(&check->report, "expiration",
						  memory_copy_text("the emulator does not say"));
	}
	else if (ttl == 0)
	{
		check_report_ok(&check->report, "expiration", memory_copy_text("never"));
	}
	else
	{
		check_report_problem(&check->report, "expiration",
							 memory_format("deleted with all its messages when nobody has pulled "
										   "for %s",
										   time),
							 update_remedy(check, "--expiration-period=never"));
	}
	free(time);
}

/* A message that is kept longer than its key is applied again when it comes again. */
static void
check_retention(struct check *check, struct json_object *subscription)
{
	int64_t own = duration(subscription, "messageRetentionDuration", DEFAULT_RETENTION);
	int64_t topic = duration(subscription, "topicMessageRetentionDuration", 0);
	int64_t longest = own > topic ? own : topic;
	char *kept = check_time(longest);
	char *keys = check->dedup_ms > 0 ? check_time(check->dedup_ms) : memory_copy_text("ever");

	if (!check->source_known)
	{
		check_report_note(
			&check->report, "retention",
			memory_format("messages for %s; how long keys are kept is not known", kept));
	}
	else if (check->dedup_ms > 0 && check->dedup_ms <= longest)
	{
		check_report_problem(
			&check->report, "retention",
			memory_format("messages for %s, keys for %s only: what comes again after that would "
						  "be applied again",
						  kept, keys),
			memory_format("SELECT %s.inbox_configure('%s', dedup_window => '45 days')",
						  check->facts.schema, check->config->source));
	}
	else
	{
		check_report_ok(&check->report, "retention",
						memory_format("messages for %s, keys for %s", kept, keys));
	}
	free(kept);
	free(keys);
}

int64_t
check_settings_retained(struct json_object *subscription)
{
	int64_t own = is_set(subscription, "retainAckedMessages")
					  ? duration(subscription, "messageRetentionDuration", DEFAULT_RETENTION)
					  : 0;
	int64_t topic = duration(subscription, "topicMessageRetentionDuration", 0);

	return own > topic ? own : topic;
}

static void
check_retained(struct check *check, struct json_object *subscription)
{
	int64_t retained = check_settings_retained(subscription);
	char *time = check_time(retained);

	if (retained > 0)
	{
		check_report_ok(&check->report, "retained acks",
						memory_format("for %s: after a restore, they can be had again", time));
	}
	else
	{
		check_report_problem(&check->report, "retained acks",
							 memory_copy_text("none: after a restore of the database, what was "
											  "acknowledged since the backup cannot be had again"),
							 update_remedy(check, "--retain-acked-messages"));
	}
	free(time);
}

void
check_settings_report(struct check *check, struct json_object *subscription)
{
	check_delivery(check, subscription);
	check_topic(check, subscription);
	check_deadline(check, subscription);
	check_order(check, subscription);
	check_filter(check, subscription);
	check_retry_policy(check, subscription);
	check_retention(check, subscription);
	check_expiration(check, subscription);
	check_retained(check, subscription);
}
