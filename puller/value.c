/* SPDX-License-Identifier: PostgreSQL */
#include "value.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "memory.h"

struct unit
{
	const char *name;
	int64_t size;
};

/* From small to large. */
static const struct unit durations[] = {{"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}};
static const struct unit bytes[] = {{"B", 1}, {"kB", 1024}, {"MB", 1 << 20}, {"GB", 1 << 30}};

#define UNITS 4

static const size_t kind_size[] = {
	[OPTION_TEXT] = sizeof(char *),
	[OPTION_BOOL] = sizeof(bool),
	[OPTION_INT] = sizeof(int),
	[OPTION_DURATION] = sizeof(int64_t),
	[OPTION_BYTES] = sizeof(int64_t),
	[OPTION_ENUM] = sizeof(unsigned),
	[OPTION_KEYS] = sizeof(struct key_rules),
};

static void *
member(const struct option_row *row, struct config *config)
{
	return (char *) config + row->offset;
}

static const void *
member_of(const struct option_row *row, const struct config *config)
{
	return (const char *) config + row->offset;
}

static const struct unit *
units_of(const struct option_row *row)
{
	return row->kind == OPTION_DURATION ? durations : bytes;
}

/* ---- from text ---------------------------------------------------------------------------- */

static bool
set_text(char **value, const char *text)
{
	free(*value);
	*value = memory_copy_text(text);
	return true;
}

static bool
set_bool(bool *value, const char *text, struct fault *fault)
{
	static const char *const words[2][4] = {{"off", "false", "no", "0"},
											{"on", "true", "yes", "1"}};

	for (size_t i = 0; i < 8; i++)
	{
		if (strcasecmp(text, words[i / 4][i % 4]) == 0)
		{
			*value = i / 4 == 1;
			return true;
		}
	}
	return fault_set(fault, memory_format("\"%s\" is neither on nor off", text), NULL);
}

/* Digits only: no sign, no leading space. A number that is too large becomes INT64_MAX. */
static bool
read_digits(const char *text, int64_t *value, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char) text[0]))
	{
		return false;
	}
	*value = strtoll(text, &end, 10);
	*rest = end;
	return true;
}

static bool
set_int(const struct option_row *row, int *value, const char *text, struct fault *fault)
{
	int64_t number;
	const char *rest;

	if (!read_digits(text, &number, &rest) || *rest != '\0' || number < row->min ||
		number > row->max)
	{
		return fault_set(fault,
						 memory_format("\"%s\" is not a whole number from %" PRId64 " to %" PRId64,
									   text, row->min, row->max),
						 memory_copy_text(row->limits));
	}
	*value = (int) number;
	return true;
}

static const struct unit *
find_unit(const struct unit *units, const char *name)
{
	for (size_t i = 0; i < UNITS; i++)
	{
		if (strcmp(units[i].name, name) == 0)
		{
			return &units[i];
		}
	}
	return NULL;
}

/* A number with its largest unit. */
static char *
measure_text(const struct unit *units, int64_t value)
{
	size_t i = UNITS - 1;

	while (i > 0 && value % units[i].size != 0)
	{
		i--;
	}
	return value == 0 ? memory_copy_text("0")
					  : memory_format("%" PRId64 "%s", value / units[i].size, units[i].name);
}

static bool
measure_out_of_range(const struct option_row *row, const char *text, struct fault *fault)
{
	char *min = measure_text(units_of(row), row->min);
	char *max = measure_text(units_of(row), row->max);

	(void) fault_set(fault,
					 memory_format("\"%s\" is out of the range from %s to %s", text, min, max),
					 memory_copy_text(row->limits));
	free(min);
	free(max);
	return false;
}

/* A number without a unit would be read as one thing here and as another elsewhere. */
static bool
set_measure(const struct option_row *row, int64_t *value, const char *text, struct fault *fault)
{
	const struct unit *units = units_of(row);
	const struct unit *unit;
	const char *rest;
	int64_t number;

	if (!read_digits(text, &number, &rest))
	{
		rest = "?";
		number = 0;
	}
	rest += strspn(rest, " ");
	unit = *rest == '\0' && number == 0 ? &units[0] : find_unit(units, rest);
	if (unit == NULL)
	{
		return fault_set(fault, memory_format("\"%s\" is not a whole number with a unit", text),
						 memory_format("The units are %s, %s, %s and %s; for example %s.",
									   units[0].name, units[1].name, units[2].name, units[3].name,
									   row->initial));
	}
	if (__builtin_mul_overflow(number, unit->size, &number) || number < row->min ||
		number > row->max)
	{
		return measure_out_of_range(row, text, fault);
	}
	*value = number;
	return true;
}

static bool
set_enum(const struct option_row *row, unsigned *value, const char *text, struct fault *fault)
{
	char *list = memory_copy_text(row->choices[0]);

	for (unsigned i = 0; row->choices[i] != NULL; i++)
	{
		char *longer;

		if (strcmp(row->choices[i], text) == 0)
		{
			free(list);
			*value = i;
			return true;
		}
		if (i > 0)
		{
			longer = memory_format("%s, %s", list, row->choices[i]);
			free(list);
			list = longer;
		}
	}
	(void) fault_set(fault, memory_format("\"%s\" is not one of %s", text, list), NULL);
	free(list);
	return false;
}

static bool
add_key(struct key_rules *rules, const char *text, struct fault *fault)
{
	const char *wrong = key_rules_add(rules, text);

	if (wrong != NULL)
	{
		return fault_set(fault, memory_format("\"%s\": %s", text, wrong), NULL);
	}
	return true;
}

bool
value_set(const struct option_row *row, struct config *config, const char *text,
		  struct fault *fault)
{
	void *value = member(row, config);

	if (text[0] == '\0')
	{
		return fault_set(fault, memory_copy_text("the value is empty"),
						 memory_copy_text("Give a value or leave the option out."));
	}
	switch (row->kind)
	{
		case OPTION_TEXT:
			return set_text(value, text);
		case OPTION_BOOL:
			return set_bool(value, text, fault);
		case OPTION_INT:
			return set_int(row, value, text, fault);
		case OPTION_DURATION:
		case OPTION_BYTES:
			return set_measure(row, value, text, fault);
		case OPTION_ENUM:
			return set_enum(row, value, text, fault);
		case OPTION_KEYS:
			return add_key(value, text, fault);
		case OPTION_CONFIG:
		case OPTION_CHECK:
		case OPTION_JSON:
		case OPTION_SEEK:
		case OPTION_YES:
		case OPTION_HELP:
		case OPTION_VERSION:
			break;
	}
	abort();
}

/* ---- and back ----------------------------------------------------------------------------- */

static char *
keys_text(const struct key_rules *rules)
{
	char *text = memory_copy_text("");

	for (size_t i = 0; i < rules->count; i++)
	{
		char *rule = key_rule_text(&rules->rule[i]);
		char *longer = memory_format("%s%s%s", text, i > 0 ? "," : "", rule);

		free(rule);
		free(text);
		text = longer;
	}
	return text;
}

char *
value_text(const struct option_row *row, const struct config *config)
{
	const void *value = member_of(row, config);

	switch (row->kind)
	{
		case OPTION_TEXT:
			return memory_copy_text(*(char *const *) value);
		case OPTION_BOOL:
			return memory_copy_text(*(const bool *) value ? "on" : "off");
		case OPTION_INT:
			return memory_format("%d", *(const int *) value);
		case OPTION_DURATION:
		case OPTION_BYTES:
			return measure_text(units_of(row), *(const int64_t *) value);
		case OPTION_ENUM:
			return memory_copy_text(row->choices[*(const unsigned *) value]);
		case OPTION_KEYS:
			return keys_text(value);
		case OPTION_CONFIG:
		case OPTION_CHECK:
		case OPTION_JSON:
		case OPTION_SEEK:
		case OPTION_YES:
		case OPTION_HELP:
		case OPTION_VERSION:
			break;
	}
	abort();
}

void
value_clear(const struct option_row *row, struct config *config)
{
	void *value = member(row, config);

	if (row->kind == OPTION_TEXT)
	{
		free(*(char **) value);
	}
	else if (row->kind == OPTION_KEYS)
	{
		key_rules_free(value);
	}
	memset(value, 0, kind_size[row->kind]);
}

void
value_swap(const struct option_row *row, struct config *one, struct config *other)
{
	char kept[sizeof(struct key_rules)];
	size_t size = kind_size[row->kind];

	memcpy(kept, member(row, one), size);
	memcpy(member(row, one), member(row, other), size);
	memcpy(member(row, other), kept, size);
}
