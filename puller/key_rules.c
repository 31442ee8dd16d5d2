/* SPDX-License-Identifier: PostgreSQL */
#include "key.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "utf8.h"

#define ATTRIBUTE_PREFIX "attribute:"
#define POINTER_PREFIX "json:"
#define MESSAGE_ID_RULE "message-id"

static bool
has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static const char *
check_pointer(const char *pointer)
{
	if (*pointer != '/' && *pointer != '\0')
	{
		return "the pointer of json: begins with '/', as in json:/order/id";
	}
	for (const char *tilde = pointer; (tilde = strchr(tilde, '~')) != NULL; tilde++)
	{
		if (tilde[1] != '0' && tilde[1] != '1')
		{
			return "in the pointer of json: '~' is written ~0 and '/' within a name ~1";
		}
	}
	return NULL;
}

const char *
key_rules_add(struct key_rules *rules, const char *text)
{
	struct key_rule rule = {.kind = KEY_MESSAGE_ID};
	const char *wrong = NULL;

	if (rules->count == KEY_RULES_MAX)
	{
		return "more than 16 rules; give --key at most 16 times";
	}
	if (!utf8_valid(text, strlen(text)))
	{
		return "not valid UTF-8, so it can match nothing";
	}
	if (has_prefix(text, ATTRIBUTE_PREFIX))
	{
		rule.kind = KEY_ATTRIBUTE;
		rule.argument = memory_copy_text(text + strlen(ATTRIBUTE_PREFIX));
		wrong = *rule.argument == '\0' ? "attribute: needs a name, as in attribute:idempotency_key"
									   : NULL;
	}
	else if (has_prefix(text, POINTER_PREFIX))
	{
		rule.kind = KEY_JSON_POINTER;
		rule.argument = memory_copy_text(text + strlen(POINTER_PREFIX));
		wrong = check_pointer(rule.argument);
	}
	else if (strcmp(text, MESSAGE_ID_RULE) != 0)
	{
		return "not a rule; write attribute:NAME, json:/pointer or message-id";
	}
	if (wrong != NULL)
	{
		free(rule.argument);
		return wrong;
	}
	rules->rule[rules->count++] = rule;
	return NULL;
}

void
key_rules_free(struct key_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
	{
		free(rules->rule[i].argument);
	}
	rules->count = 0;
}

char *
key_rule_text(const struct key_rule *rule)
{
	switch (rule->kind)
	{
		case KEY_ATTRIBUTE:
			return memory_format(ATTRIBUTE_PREFIX "%s", rule->argument);
		case KEY_JSON_POINTER:
			return memory_format(POINTER_PREFIX "%s", rule->argument);
		case KEY_MESSAGE_ID:
			break;
	}
	return memory_copy_text(MESSAGE_ID_RULE);
}
