/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "check_settings.h"
#include "memory.h"

/* ---- may it be consumed --------------------------------------------------------------------- */

/* True when the answer names the permission. */
static bool
holds_consume(struct json_object *document)
{
	struct json_object *held;

	if (!json_object_object_get_ex(document, "permissions", &held) ||
		!json_object_is_type(held, json_type_array))
	{
		return false;
	}
	for (size_t i = 0; i < json_object_array_length(held); i++)
	{
		const char *name = json_object_get_string(json_object_array_get_idx(held, i));

		if (name != NULL && strcmp(name, PUBSUB_CONSUME) == 0)
		{
			return true;
		}
	}
	return false;
}

/* As a policy names who is asking; an external account is known by its pool and its subject. */
static char *
member_of(const struct auth *auth)
{
	const char *account = auth_account(auth);

	if (account != NULL && strncmp(account, "//", 2) == 0)
	{
		const char *provider = strstr(account, "/providers/");
		size_t size = provider != NULL ? (size_t) (provider - account) : strlen(account);

		return memory_format("principal:%.*s/subject/SUBJECT", (int) size, account);
	}
	if (account == NULL)
	{
		return memory_copy_text(strcmp(auth_kind(auth), "authorized_user") == 0 ? "user:ACCOUNT"
																				: "MEMBER");
	}
	return memory_format(
		"%s:%s", strstr(account, ".gserviceaccount.com") != NULL ? "serviceAccount" : "user",
		account);
}

static char *
bind_remedy(const struct check *check, const struct auth *auth)
{
	char *member = member_of(auth);
	char *remedy = memory_format("gcloud pubsub subscriptions add-iam-policy-binding %s "
								 "--role=roles/pubsub.subscriber --member=%s",
								 check->config->subscription, member);

	free(member);
	return remedy;
}

/*
 * Everybody may ask: a refusal is of the account, the quota project or the API, and pulls will get
 * the same one. Without any answer so far, nothing is known to be well.
 */
static void
report_not_asked(struct check *check, const struct check_answer *answer, bool readable)
{
	if (readable && answer->outcome != PUBSUB_FORBIDDEN)
	{
		check_report_note(&check->report, "consuming",
						  memory_format("whether it is allowed could not be asked: %s",
										answer->error != NULL ? answer->error : "no answer"));
		return;
	}
	check_report_problem(&check->report, "consuming",
						 memory_format("not allowed, as far as can be seen: %s",
									   answer->error != NULL ? answer->error : "no answer"),
						 check_remedy(pubsub_remedy(answer->outcome, answer->status)));
}

/* Pulling would tell, and would lease messages. An emulator knows no permissions. */
static void
check_permission(struct check *check, struct pubsub *pubsub, bool readable)
{
	struct check_answer answer;

	if (check->config->emulator)
	{
		return;
	}
	pubsub_test_permissions(pubsub, check_take_answer, check_answer_new(&answer));
	check_await_answer(check, &answer);
	if (answer.outcome != PUBSUB_OK)
	{
		report_not_asked(check, &answer, readable);
	}
	else if (holds_consume(answer.document))
	{
		check_report_ok(&check->report, "consuming",
						memory_copy_text("allowed (" PUBSUB_CONSUME ")"));
	}
	else
	{
		check_report_problem(&check->report, "consuming",
							 memory_copy_text("not allowed: " PUBSUB_CONSUME " is missing"),
							 bind_remedy(check, pubsub->auth));
	}
	check_answer_free(&answer);
}

/* ---- a native dead-letter topic ------------------------------------------------------------- */

/* The service counts every return of a message, also those of an outage. */
#define NATIVE_ATTEMPTS_LEAST 100

static bool
is_empty_list(struct json_object *document)
{
	struct json_object *list;

	return !json_object_object_get_ex(document, "subscriptions", &list) ||
		   !json_object_is_type(list, json_type_array) || json_object_array_length(list) == 0;
}

/* What is moved to a topic without a subscription is lost. True when it is not. */
static bool
check_dead_letter_topic(struct check *check, struct pubsub *pubsub, const char *topic)
{
	struct check_answer answer;
	bool kept = true;

	pubsub_list_subscriptions(pubsub, topic, check_take_answer, check_answer_new(&answer));
	check_await_answer(check, &answer);
	if (answer.outcome == PUBSUB_NOT_FOUND ||
		(answer.outcome == PUBSUB_OK && is_empty_list(answer.document)))
	{
		kept = false;
		check_report_problem(
			&check->report, "dead letters",
			memory_format("%s %s: what Pub/Sub moves there is lost", topic,
						  answer.outcome == PUBSUB_OK ? "has no subscription" : "does not exist"),
			memory_format("gcloud pubsub subscriptions update %s --clear-dead-letter-policy; inbox "
						  "keeps dead letters itself",
						  check->config->subscription));
	}
	else if (answer.outcome != PUBSUB_OK)
	{
		check_report_note(&check->report, "dead letters",
						  memory_format("whether %s has a subscription could not be read: %s",
										topic, answer.error));
	}
	check_answer_free(&answer);
	return kept;
}

static void
check_dead_letters(struct check *check, struct pubsub *pubsub, struct json_object *subscription)
{
	struct json_object *policy = check_settings_object(subscription, "deadLetterPolicy");
	const char *topic = check_settings_text(policy, "deadLetterTopic");
	long long attempts = check_settings_number(policy, "maxDeliveryAttempts", 5);
	bool kept;

	if (topic == NULL)
	{
		check_report_ok(&check->report, "dead letters",
						memory_copy_text("none of Pub/Sub's: inbox keeps them itself"));
		return;
	}
	kept = check_dead_letter_topic(check, pubsub, topic);
	if (attempts < NATIVE_ATTEMPTS_LEAST)
	{
		check_report_problem(
			&check->report, "dead letters",
			memory_format("Pub/Sub moves a message to %s after %lld attempts: an outage of the "
						  "database would move good ones",
						  topic, attempts),
			memory_format("gcloud pubsub subscriptions update %s --clear-dead-letter-policy, or "
						  "--dead-letter-topic=%s --max-delivery-attempts=%d",
						  check->config->subscription, topic, NATIVE_ATTEMPTS_LEAST));
	}
	else if (kept)
	{
		check_report_ok(&check->report, "dead letters",
						memory_format("to %s after %lld attempts", topic, attempts));
	}
}

/* ---- the subscription ----------------------------------------------------------------------- */

/* Without the right to read it, all goes on: consuming takes another one. */
static void
report_unreadable(struct check *check, const struct check_answer *answer)
{
	if (answer->outcome == PUBSUB_FORBIDDEN)
	{
		check_report_note(&check->report, "subscription",
						  memory_format("%s may not be read, which consuming does not need; what "
										"follows from its settings was not looked at, and an ack "
										"deadline of 10 s is assumed (roles/pubsub.viewer): %s",
										check->config->subscription, answer->error));
		return;
	}
	check_report_problem(&check->report, "subscription",
						 memory_format("%s: %s", check->config->subscription,
									   answer->error != NULL ? answer->error : "no answer"),
						 check_remedy(pubsub_remedy(answer->outcome, answer->status)));
}

static void
check_readable(struct check *check, struct pubsub *pubsub)
{
	struct check_answer answer;

	pubsub_get_subscription(pubsub, check_take_answer, check_answer_new(&answer));
	check_await_answer(check, &answer);
	if (answer.outcome != PUBSUB_OK || answer.document == NULL)
	{
		report_unreadable(check, &answer);
		if (answer.outcome == PUBSUB_FORBIDDEN)
		{
			check_permission(check, pubsub, false);
		}
	}
	else
	{
		check_settings_report(check, answer.document);
		check_dead_letters(check, pubsub, answer.document);
		check_permission(check, pubsub, true);
	}
	check_answer_free(&answer);
}

void
check_subscription(struct check *check, struct auth *auth)
{
	struct pubsub pubsub;

	pubsub_init(&pubsub, check->http, auth, check->config);
	check_readable(check, &pubsub);
	pubsub_free(&pubsub);
}
