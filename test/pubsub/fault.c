/* SPDX-License-Identifier: PostgreSQL */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "delivery.h"
#include "entry.h"
#include "history.h"
#include "memory.h"
#include "problem.h"
#include "request.h"
#include "rule.h"
#include "service.h"
#include "subscription.h"
#include "token.h"

struct faults
{
	struct service *service;
	struct rule **rules;
	size_t count;
	size_t made; /* rules get numbers that are not used again */
	uint64_t seed;
};

struct faults *
faults_new(struct service *service)
{
	struct faults *faults = memory_get(sizeof(*faults));

	faults->service = service;
	return faults;
}

void
faults_free(struct faults *faults)
{
	faults_clear(faults);
	free(faults);
}

void
faults_seed(struct faults *faults, uint64_t seed)
{
	faults->seed = seed;
}

bool
faults_add(struct faults *faults, struct json_object *array, struct problem *problem)
{
	size_t more = json_object_array_length(array);
	size_t before = faults->count;

	faults->rules = memory_resize(faults->rules, (before + more + 1) * sizeof(*faults->rules));
	for (size_t i = 0; i < more; i++)
	{
		struct rule *rule =
			rule_parse(json_object_array_get_idx(array, i), ++faults->made, faults->seed, problem);

		if (rule == NULL)
		{
			while (faults->count > before)
				rule_free(faults->rules[--faults->count]);
			return false;
		}
		faults->rules[faults->count++] = rule;
	}
	return true;
}

void
faults_add_all_kinds(struct faults *faults, double rate)
{
	static const char *const kinds[] = {
		"{\"on\":\"connect\",\"do\":\"refuse\",\"probability\":%g}",
		"{\"on\":\"request\",\"do\":\"reset\",\"probability\":%g}",
		"{\"on\":\"request\",\"do\":\"reset\",\"when\":\"after\",\"probability\":%g}",
		"{\"on\":\"request\",\"do\":\"delay\",\"ms\":200,\"probability\":%g}",
		"{\"on\":\"request\",\"do\":\"status\",\"code\":401,\"probability\":%g}",
		"{\"on\":\"request\",\"do\":\"status\",\"code\":403,\"probability\":%g}",
		"{\"on\":\"request\",\"do\":\"status\",\"code\":429,\"retryAfter\":1,\"probability\":%g}",
		"{\"on\":\"request\",\"do\":\"status\",\"code\":500,\"probability\":%g}",
		"{\"on\":\"request\",\"do\":\"status\",\"code\":503,\"probability\":%g}",
		"{\"on\":\"request\",\"do\":\"cut\",\"bytes\":100,\"probability\":%g}",
		"{\"on\":\"request\",\"do\":\"half\",\"probability\":%g}",
		"{\"on\":\"request\",\"do\":\"garbage\",\"probability\":%g}",
		"{\"on\":\"ack\",\"do\":\"ignore\",\"probability\":%g}",
		"{\"on\":\"pull\",\"do\":\"reorder\",\"probability\":%g}",
		"{\"on\":\"pull\",\"do\":\"expire\",\"probability\":%g}",
		"{\"on\":\"deliver\",\"do\":\"duplicate\",\"probability\":%g}",
		"{\"on\":\"deliver\",\"do\":\"share\",\"probability\":%g}",
		"{\"on\":\"ack_id\",\"do\":\"redeliver\",\"probability\":%g}",
	};
	struct json_object *array = json_object_new_array();
	struct problem problem = {0};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
	{
		char text[200];

		snprintf(text, sizeof(text), kinds[i], rate);
		json_object_array_add(array, json_tokener_parse(text));
	}
	faults_add(faults, array, &problem);
	json_object_put(array);
}

void
faults_clear(struct faults *faults)
{
	while (faults->count > 0)
		rule_free(faults->rules[--faults->count]);
	free(faults->rules);
	faults->rules = NULL;
}

struct json_object *
faults_render(const struct faults *faults)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < faults->count; i++)
	{
		const struct rule *rule = faults->rules[i];
		struct json_object *copy = NULL;

		json_object_deep_copy(rule->source, &copy, NULL);
		json_object_object_add(copy, "rule", json_object_new_uint64(rule->number));
		json_object_object_add(copy, "seen", json_object_new_uint64(rule->seen));
		json_object_object_add(copy, "fired", json_object_new_uint64(rule->fired));
		json_object_array_add(array, copy);
	}
	return array;
}

/* The next rule from *position on that fires for the event, or NULL. */
static const struct rule *
next_firing(struct faults *faults, size_t *position, enum fault_event event,
			const char *subscription, const char *token)
{
	while (*position < faults->count)
	{
		struct rule *rule = faults->rules[(*position)++];

		if (rule_fires(rule, event, subscription, token))
		{
			history_fault(faults->service->history, rule->number, action_name(rule->action),
						  fault_event_name(event), rule->seen);
			return rule;
		}
	}
	return NULL;
}

bool
fault_connect(struct faults *faults)
{
	bool refused = false;

	for (size_t i = 0; next_firing(faults, &i, EVENT_CONNECT, NULL, NULL) != NULL;)
		refused = true;
	return refused;
}

/* Ends every lease of the subscription. */
static void
expire_all(struct service *service, const char *name)
{
	struct subscription *subscription = name == NULL ? NULL : subscription_find(service, name);
	uint64_t end;

	if (subscription == NULL)
		return;
	end = subscription->first_position + (subscription->window_end - subscription->window_first);
	for (uint64_t at = subscription->first_position; at < end; at++)
	{
		struct entry *entry = subscription_entry(subscription, at);

		if (entry != NULL && entry->state == ENTRY_LEASED)
			delivery_expire(entry);
	}
}

static void
apply(const struct rule *rule, struct request *request, const char *subscription)
{
	struct effects *effects = &request->effects;

	if (rule->action == ACTION_RESET || rule->action == ACTION_STALL)
		effects->skip |= !rule->after_execution;
	effects->reset |= rule->action == ACTION_RESET;
	effects->stall |= rule->action == ACTION_STALL;
	effects->ignore |= rule->action == ACTION_IGNORE;
	effects->shuffle |= rule->action == ACTION_REORDER;
	effects->half |= rule->action == ACTION_HALF;
	effects->garbage |= rule->action == ACTION_GARBAGE;
	if (rule->action == ACTION_DELAY)
		effects->delay = rule->delay;
	if (rule->action == ACTION_CUT)
	{
		effects->cut = true;
		effects->cut_at = rule->bytes;
	}
	if (rule->action == ACTION_STATUS)
	{
		effects->status = rule->code;
		snprintf(effects->retry_after, sizeof(effects->retry_after), "%s",
				 rule->retry_after ? rule->retry_after : "");
		snprintf(effects->message, sizeof(effects->message), "%s",
				 rule->text ? rule->text : "An injected fault.");
	}
	if (rule->action == ACTION_EXPIRE)
		expire_all(request->service, subscription);
	if (rule->action == ACTION_REVOKE && request->service->tokens != NULL)
		token_revoke(request->service->tokens, request);
}

void
fault_request(struct faults *faults, struct request *request, enum fault_event event,
			  const char *subscription)
{
	const char *token = token_of(request);
	const struct rule *rule;

	for (size_t i = 0; (rule = next_firing(faults, &i, event, subscription, token)) != NULL;)
		apply(rule, request, subscription);
}

void
fault_delivery(struct faults *faults, const char *subscription, struct delivery_fault *fault)
{
	const struct rule *rule;

	for (size_t i = 0; (rule = next_firing(faults, &i, EVENT_DELIVER, subscription, NULL)) != NULL;)
	{
		fault->duplicate |= rule->action == ACTION_DUPLICATE;
		fault->share |= rule->action == ACTION_SHARE;
		fault->expire |= rule->action == ACTION_EXPIRE;
		if (rule->action == ACTION_RAW)
			fault->raw = rule->text;
	}
}

void
fault_ack_id(struct faults *faults, const char *subscription, struct ack_fault *fault)
{
	const struct rule *rule;

	for (size_t i = 0; (rule = next_firing(faults, &i, EVENT_ACK_ID, subscription, NULL)) != NULL;)
	{
		fault->ignore |= rule->action == ACTION_IGNORE;
		fault->redeliver |= rule->action == ACTION_REDELIVER;
		if (rule->action == ACTION_FAIL)
			fault->reason = rule->text;
	}
}
