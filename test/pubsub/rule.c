/* SPDX-License-Identifier: PostgreSQL */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "memory.h"
#include "name.h"
#include "problem.h"
#include "rule.h"
#include "timer.h"

#define BIT(event) (1u << (event))
#define REQUESTS                                                                                  \
	(BIT(EVENT_PUBLISH) | BIT(EVENT_PULL) | BIT(EVENT_ACK) | BIT(EVENT_MODACK) | BIT(EVENT_GET) | \
	 BIT(EVENT_SEEK) | BIT(EVENT_OTHER))

static const char *const event_names[EVENTS] = {
	[EVENT_CONNECT] = "connect", [EVENT_PUBLISH] = "publish", [EVENT_PULL] = "pull",
	[EVENT_ACK] = "ack",		 [EVENT_MODACK] = "modack",	  [EVENT_GET] = "get",
	[EVENT_SEEK] = "seek",		 [EVENT_OTHER] = "other",	  [EVENT_DELIVER] = "deliver",
	[EVENT_ACK_ID] = "ack_id",
};

static const struct
{
	const char *name;
	unsigned events;   /* on which of them it makes sense */
	const char *needs; /* a member it cannot do without, or NULL */
} actions[ACTIONS] = {
	[ACTION_REFUSE] = {"refuse", BIT(EVENT_CONNECT), NULL},
	[ACTION_RESET] = {"reset", REQUESTS, NULL},
	[ACTION_STALL] = {"stall", REQUESTS, NULL},
	[ACTION_DELAY] = {"delay", REQUESTS, "ms"},
	[ACTION_STATUS] = {"status", REQUESTS, "code"},
	[ACTION_CUT] = {"cut", REQUESTS, "bytes"},
	[ACTION_HALF] = {"half", REQUESTS, NULL},
	[ACTION_GARBAGE] = {"garbage", REQUESTS, NULL},
	[ACTION_IGNORE] = {"ignore", BIT(EVENT_ACK) | BIT(EVENT_MODACK) | BIT(EVENT_ACK_ID), NULL},
	[ACTION_REORDER] = {"reorder", BIT(EVENT_PULL), NULL},
	[ACTION_EXPIRE] = {"expire", REQUESTS | BIT(EVENT_DELIVER), NULL},
	[ACTION_REVOKE] = {"revoke", REQUESTS, NULL},
	[ACTION_DUPLICATE] = {"duplicate", BIT(EVENT_DELIVER), NULL},
	[ACTION_SHARE] = {"share", BIT(EVENT_DELIVER), NULL},
	[ACTION_RAW] = {"raw", BIT(EVENT_DELIVER), "json"},
	[ACTION_REDELIVER] = {"redeliver", BIT(EVENT_ACK_ID), NULL},
	[ACTION_FAIL] = {"fail", BIT(EVENT_ACK_ID), "reason"},
};

const char *
fault_event_name(enum fault_event event)
{
	return event_names[event];
}

const char *
action_name(enum action action)
{
	return actions[action].name;
}

static bool
parse_event(struct rule *rule, const char *name, struct problem *problem)
{
	if (strcmp(name, "request") == 0)
	{
		rule->events = REQUESTS;
		return true;
	}
	for (unsigned event = 0; event < EVENTS; event++)
	{
		if (strcmp(name, event_names[event]) == 0)
		{
			rule->events = BIT(event);
			return true;
		}
	}
	return problem_set(problem, STATUS_INVALID_ARGUMENT,
					   "Fault rule: \"on\" is \"%.50s\"; it has to be request, connect, publish, "
					   "pull, ack, modack, get, seek, other, deliver or ack_id.",
					   name);
}

static bool
parse_action(struct rule *rule, struct json_object *object, const char *name,
			 struct problem *problem)
{
	for (unsigned action = 0; action < ACTIONS; action++)
	{
		if (strcmp(name, actions[action].name) != 0)
			continue;
		rule->action = action;
		if ((rule->events & ~actions[action].events) != 0)
			return problem_set(problem, STATUS_INVALID_ARGUMENT,
							   "Fault rule: \"%s\" cannot be done on this event.", name);
		if (actions[action].needs != NULL && body_member(object, actions[action].needs) == NULL)
			return problem_set(problem, STATUS_INVALID_ARGUMENT, "Fault rule: \"%s\" needs \"%s\".",
							   name, actions[action].needs);
		return true;
	}
	return problem_set(problem, STATUS_INVALID_ARGUMENT,
					   "Fault rule: \"do\" is \"%.50s\", which is no fault.", name);
}

static bool
parse_nth(struct rule *rule, struct json_object *object, struct problem *problem)
{
	struct json_object *nth = body_member(object, "nth");
	size_t count = 1;

	if (nth == NULL)
		return true;
	if (json_object_is_type(nth, json_type_array))
		count = json_object_array_length(nth);
	if (count > MAX_NTH)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Fault rule: \"nth\" has %zu numbers; the maximum is %d.", count,
						   MAX_NTH);
	for (size_t i = 0; i < count; i++)
	{
		struct json_object *number =
			json_object_is_type(nth, json_type_array) ? json_object_array_get_idx(nth, i) : nth;

		if (!json_object_is_type(number, json_type_int) || json_object_get_int64(number) < 1)
			return problem_set(problem, STATUS_INVALID_ARGUMENT,
							   "Fault rule: \"nth\" has to be a number from 1 on, or an array of "
							   "such.");
		rule->nth[rule->nth_count++] = (uint64_t) json_object_get_int64(number);
	}
	return true;
}

static bool
parse_when(struct rule *rule, struct json_object *object, struct problem *problem)
{
	struct json_object *probability = body_member(object, "probability");
	const char *when = "before";
	int64_t every = 0;
	int64_t after = 0;
	int64_t times = 0;

	if (!parse_nth(rule, object, problem) || !body_take_int(object, "every", &every, problem) ||
		!body_take_int(object, "after", &after, problem) ||
		!body_take_int(object, "times", &times, problem) ||
		!body_take_string(object, "when", &when, problem))
		return false;
	rule->every = (uint64_t) every;
	rule->after = (uint64_t) after;
	rule->times = (uint64_t) times;
	rule->probability = probability == NULL ? 0 : json_object_get_double(probability);
	rule->after_execution = strcmp(when, "after") == 0;
	if (!rule->after_execution && strcmp(when, "before") != 0)
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Fault rule: \"when\" has to be before or after (the execution).");
	if (rule->nth_count > 0 || rule->every > 0 || rule->probability > 0)
		return true;
	return problem_set(problem, STATUS_INVALID_ARGUMENT,
					   "Fault rule: say when it fires with \"nth\", \"every\" or \"probability\".");
}

static char *
copy_member(struct json_object *object, const char *name)
{
	struct json_object *value = body_member(object, name);

	return value == NULL ? NULL : memory_copy(json_object_get_string(value));
}

static bool
parse_what(struct rule *rule, struct json_object *object, struct problem *problem)
{
	int64_t code = 0;
	int64_t bytes = 0;
	int64_t delay = 0;

	if (!body_take_int(object, "code", &code, problem) ||
		!body_take_int(object, "bytes", &bytes, problem) ||
		!body_take_int(object, "ms", &delay, problem))
		return false;
	if (rule->action == ACTION_STATUS && (code < 300 || code > 599))
		return problem_set(problem, STATUS_INVALID_ARGUMENT,
						   "Fault rule: \"code\" has to be between 300 and 599.");
	rule->code = (int) code;
	rule->bytes = bytes > 0 ? (size_t) bytes : 0;
	rule->delay = delay * MILLISECOND;
	rule->retry_after = copy_member(object, "retryAfter");
	rule->text = copy_member(object, rule->action == ACTION_RAW	   ? "json"
									 : rule->action == ACTION_FAIL ? "reason"
																   : "message");
	return true;
}

struct rule *
rule_parse(struct json_object *object, size_t number, uint64_t seed, struct problem *problem)
{
	static const char *const names[] = {
		"on",		   "do",	"subscription", "nth",	   "every", "after",
		"probability", "times", "when",			"code",	   "bytes", "ms",
		"retryAfter",  "json",	"reason",		"message", "token", NULL,
	};
	struct rule *rule = memory_get(sizeof(*rule));
	const char *event = "";
	const char *action = "";
	char stream[32];

	rule->number = number;
	snprintf(stream, sizeof(stream), "rule#%zu", number);
	rule->random = random_stream(seed, stream);
	if ((json_object_is_type(object, json_type_object) ||
		 problem_set(problem, STATUS_INVALID_ARGUMENT, "A fault rule has to be an object.")) &&
		body_known(object, names, problem) && body_take_string(object, "on", &event, problem) &&
		body_take_string(object, "do", &action, problem) && parse_event(rule, event, problem) &&
		parse_action(rule, object, action, problem) && parse_when(rule, object, problem) &&
		parse_what(rule, object, problem))
	{
		rule->subscription = copy_member(object, "subscription");
		rule->token = copy_member(object, "token");
		rule->source = json_object_get(object);
		return rule;
	}
	rule_free(rule);
	return NULL;
}

static bool
is_about(const struct rule *rule, enum fault_event event, const char *subscription,
		 const char *token)
{
	if ((rule->events & BIT(event)) == 0)
		return false;
	if (rule->token != NULL && (token == NULL || strcmp(rule->token, token) != 0))
		return false;
	if (rule->subscription == NULL)
		return true;
	return subscription != NULL && (strcmp(rule->subscription, subscription) == 0 ||
									strcmp(rule->subscription, name_id(subscription)) == 0);
}

/* Draws for each event, so that what fires depends on counts and the seed alone. */
static bool
is_due(struct rule *rule)
{
	bool drawn = rule->probability > 0 && random_unit(&rule->random) < rule->probability;

	for (size_t i = 0; i < rule->nth_count; i++)
	{
		if (rule->nth[i] == rule->seen)
			return true;
	}
	if (rule->seen <= rule->after)
		return false;
	return drawn || (rule->every > 0 && (rule->seen - rule->after) % rule->every == 0);
}

bool
rule_fires(struct rule *rule, enum fault_event event, const char *subscription, const char *token)
{
	if (!is_about(rule, event, subscription, token))
		return false;
	rule->seen++;
	if (!is_due(rule) || (rule->times > 0 && rule->fired >= rule->times))
		return false;
	rule->fired++;
	return true;
}

void
rule_free(struct rule *rule)
{
	free(rule->subscription);
	free(rule->token);
	free(rule->retry_after);
	free(rule->text);
	json_object_put(rule->source);
	free(rule);
}
