/* SPDX-License-Identifier: PostgreSQL */
#include "key.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "scan.h"
#include "word.h"

#define MESSAGE_ID_PREFIX "mid:"

/* Whatever reads such a key as a number can hold it: an int64 has room for any 18 digits. */
#define KEY_INTEGER_DIGITS 18

/* One search: the payload is scanned when the first rule asks for it, and once. */
struct search
{
	const struct key_fields *fields;
	bool scanned;
	bool is_json;
	struct slice root;
};

/* What a rule gave: KEY_FOUND with a key, or the reason, which goes on after the rule's text. */
struct hit
{
	enum key_outcome outcome;
	char *text;
	size_t size;
	const char *reason;
};

static struct hit
absent(const char *reason)
{
	return (struct hit){.outcome = KEY_ABSENT, .reason = reason};
}

static struct hit
refused(const char *reason)
{
	return (struct hit){.outcome = KEY_REFUSED, .reason = reason};
}

/* A string as a key; "if_empty" is the reason when there is nothing in it. */
static struct hit
take_string(const struct slice *string, const char *if_empty)
{
	unsigned flaws = scan_flaws(string);
	struct hit hit = {.outcome = KEY_FOUND};

	if (string->length == 2)
	{
		return absent(if_empty);
	}
	if (flaws != 0)
	{
		return refused(flaws & ~FLAWS_OF_STORAGE ? "is not sound text"
					   : flaws & FLAW_NUL		 ? "holds U+0000, which PostgreSQL cannot store"
										  : "holds half of a surrogate pair, which PostgreSQL "
											"cannot store");
	}
	hit.text = slice_text(string, &hit.size);
	return hit;
}

static struct hit
find_attribute(const struct key_fields *fields, const char *name)
{
	struct slice value;
	size_t times;

	if (fields->attributes_lost)
	{
		return refused("cannot be looked up, as the attributes cannot be read");
	}
	times = slice_kind(&fields->attributes) == '{'
				? slice_find(&fields->attributes, name, strlen(name), &value)
				: 0;
	if (times == 0)
	{
		return absent("is absent");
	}
	if (times > 1)
	{
		return refused("occurs twice");
	}
	if (slice_kind(&value) != '"')
	{
		return refused("is not a string");
	}
	return take_string(&value, "is empty");
}

/* The element of an array that a pointer's token names (RFC 6901, section 4). */
static bool
find_element(const struct slice *array, const char *token, struct slice *value)
{
	struct slice_walk walk;
	unsigned long index;

	if (*token == '-' || !word_is_integer(token, strlen(token), 9))
	{
		return false;
	}
	index = strtoul(token, NULL, 10);
	slice_enter(&walk, array);
	do
	{
		if (!slice_next_element(&walk, value))
		{
			return false;
		}
	} while (index-- > 0);
	return true;
}

/* Copies the token at "pointer" with ~1 and ~0 resolved, and moves "pointer" behind it. */
static char *
take_token(const char **pointer)
{
	size_t length = strcspn(*pointer, "/");
	char *token = memory_copy(*pointer, length);
	char *to = token;

	for (const char *from = token; *from != '\0'; from++)
	{
		if (*from == '~')
		{
			from++;
			*to++ = *from == '1' ? '/' : '~';
		}
		else
		{
			*to++ = *from;
		}
	}
	*to = '\0';
	*pointer += length;
	return token;
}

/* How many values the pointer leads to: 0, 1, or more where a name occurs twice. */
static size_t
follow_pointer(const struct slice *root, const char *pointer, struct slice *value)
{
	size_t times = 1;

	*value = *root;
	while (times == 1 && *pointer == '/')
	{
		struct slice container = *value;
		char *token;

		pointer++;
		token = take_token(&pointer);
		switch (slice_kind(&container))
		{
			case '{':
				times = slice_find(&container, token, strlen(token), value);
				break;
			case '[':
				times = find_element(&container, token, value) ? 1 : 0;
				break;
			default:
				times = 0;
		}
		free(token);
	}
	return times;
}

static void
scan_payload(struct search *search)
{
	const struct key_fields *fields = search->fields;
	struct scan_fault fault;

	if (!search->scanned)
	{
		search->scanned = true;
		search->is_json =
			fields->data != NULL &&
			scan_document((const char *) fields->data, fields->data_size, &search->root, &fault);
	}
}

static struct hit
find_in_payload(struct search *search, const char *pointer)
{
	static const char no_key[] =
		"is neither a non-empty string nor an integer of at most 18 digits";
	struct slice value;
	struct hit hit = {.outcome = KEY_FOUND};
	size_t times;

	if (search->fields->data_lost)
	{
		return refused("cannot be looked up, as the payload cannot be read");
	}
	scan_payload(search);
	if (!search->is_json)
	{
		return absent("is absent, as the payload is not JSON");
	}
	times = follow_pointer(&search->root, pointer, &value);
	if (times == 0)
	{
		return absent("is absent");
	}
	if (times > 1)
	{
		return refused("occurs twice");
	}
	if (slice_kind(&value) == '"')
	{
		return take_string(&value, no_key);
	}
	if (!word_is_integer(value.start, value.length, KEY_INTEGER_DIGITS))
	{
		return absent(no_key);
	}
	hit.text = memory_copy(value.start, value.length);
	hit.size = value.length;
	return hit;
}

static struct hit
find_message_id(const struct key_fields *fields)
{
	struct hit hit = {.outcome = KEY_FOUND};

	if (fields->message_id == NULL)
	{
		return refused("cannot be read");
	}
	hit.text = memory_format(MESSAGE_ID_PREFIX "%s", fields->message_id);
	hit.size = strlen(hit.text);
	return hit;
}

static struct hit
apply_rule(struct search *search, const struct key_rule *rule)
{
	switch (rule->kind)
	{
		case KEY_ATTRIBUTE:
			return find_attribute(search->fields, rule->argument);
		case KEY_JSON_POINTER:
			return find_in_payload(search, rule->argument);
		case KEY_MESSAGE_ID:
			break;
	}
	return find_message_id(search->fields);
}

/* Adds why a rule gave no key; what was said before is freed. */
static char *
add_reason(char *said, const struct key_rule *rule, const char *reason)
{
	char *rule_name = key_rule_text(rule);
	char *all = memory_format("%s%s%s %s", said != NULL ? said : "", said != NULL ? "; " : "",
							  rule_name, reason);

	free(rule_name);
	free(said);
	return all;
}

static struct key
finish(struct hit hit, const struct key_rule *rule)
{
	struct key key = {.outcome = hit.outcome};

	if (hit.outcome == KEY_REFUSED)
	{
		key.detail = add_reason(NULL, rule, hit.reason);
	}
	else if (hit.size > KEY_MAX_BYTES)
	{
		key.outcome = KEY_REFUSED;
		key.detail = memory_format("key of %zu bytes, at most %d", hit.size, KEY_MAX_BYTES);
		free(hit.text);
	}
	else
	{
		key.text = hit.text;
		key.from_message_id = rule->kind == KEY_MESSAGE_ID;
	}
	return key;
}

struct key
key_find(const struct key_rules *rules, const struct key_fields *fields)
{
	struct search search = {.fields = fields};
	struct key none = {.outcome = KEY_ABSENT};

	for (size_t i = 0; i < rules->count; i++)
	{
		struct hit hit = apply_rule(&search, &rules->rule[i]);

		if (hit.outcome != KEY_ABSENT)
		{
			free(none.detail);
			return finish(hit, &rules->rule[i]);
		}
		none.detail = add_reason(none.detail, &rules->rule[i], hit.reason);
	}
	if (none.detail == NULL)
	{
		none.detail = memory_copy_text("there is no rule");
	}
	return none;
}
