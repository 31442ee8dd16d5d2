/* SPDX-License-Identifier: PostgreSQL */
#include "label.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "slice.h"
#include "utf8.h"

static const char prefix[] = "attribute:";

const char *
label_check(const char *option)
{
	if (strncmp(option, prefix, strlen(prefix)) != 0 || option[strlen(prefix)] == '\0')
	{
		return "it is not attribute:NAME";
	}
	if (!utf8_valid(option, strlen(option)))
	{
		return "it is not valid UTF-8, so it can match nothing";
	}
	return NULL;
}

/* As Prometheus allows it; the names that metrics have already get a "message_" before them. */
static char *
name_of(const char *attribute)
{
	static const char *const taken[] = {"verdict", "source", "le", "job", "instance"};
	bool spoken_for = isdigit((unsigned char) attribute[0]) || strncmp(attribute, "__", 2) == 0;
	char *name;

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
	{
		spoken_for |= strcmp(attribute, taken[i]) == 0;
	}
	name = memory_format("%s%s", spoken_for ? "message_" : "", attribute);
	for (char *at = name; *at != '\0'; at++)
	{
		*at = isalnum((unsigned char) *at) && (unsigned char) *at < 0x80 ? *at : '_';
	}
	return name;
}

void
label_init(struct label *label, const char *option)
{
	*label = (struct label){.count = LABEL_OTHER + 1};
	if (option != NULL)
	{
		label->attribute = option + strlen(prefix);
		label->name = name_of(label->attribute);
	}
}

void
label_free(struct label *label)
{
	for (size_t i = LABEL_OTHER + 1; i < label->count; i++)
	{
		free(label->value[i]);
	}
	free(label->name);
}

/* Few and mostly the first ones: a walk is faster than a hash. */
static unsigned char
place_of(struct label *label, const struct slice *string)
{
	size_t size;

	for (size_t i = LABEL_OTHER + 1; i < label->count; i++)
	{
		if (slice_equals(string, label->value[i], strlen(label->value[i])))
		{
			return (unsigned char) i;
		}
	}
	if (label->count == LABELS || string->length > LABEL_VALUE_BYTES + 2)
	{
		return LABEL_OTHER;
	}
	label->value[label->count] = slice_text(string, &size);
	return (unsigned char) label->count++;
}

unsigned char
label_of(struct label *label, const char *attributes)
{
	struct slice object = {.start = attributes};
	struct slice value = {0};

	if (label->attribute == NULL || attributes == NULL)
	{
		return LABEL_NONE;
	}
	object.length = strlen(attributes);
	if (slice_find(&object, label->attribute, strlen(label->attribute), &value) == 0 ||
		slice_kind(&value) != '"' || value.length == 2)
	{
		return LABEL_NONE;
	}
	return place_of(label, &value);
}

const char *
label_value(const struct label *label, size_t place)
{
	return place == LABEL_NONE ? "" : place == LABEL_OTHER ? "other" : label->value[place];
}
