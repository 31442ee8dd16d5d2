/* SPDX-License-Identifier: PostgreSQL */
#include "label.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "slice.h"
#include "utf8.h"

static const char prefix[] = "attribute:";
static const char other[] = "other";

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
	bool spoken_for = isdigit((unsigned char) attribute[0]);
	char *name = memory_format("message_%s", attribute);
	char *own = name + strlen("message_");

	for (char *at = own; *at != '\0'; at++)
	{
		*at = isalnum((unsigned char) *at) && (unsigned char) *at < 0x80 ? *at : '_';
	}
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
	{
		spoken_for |= strcmp(own, taken[i]) == 0;
	}
	if (!spoken_for && strncmp(own, "__", 2) != 0)
	{
		memmove(name, own, strlen(own) + 1);
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
	/* A value that is "other" itself must not make that series twice. */
	if (label->count == LABELS || string->length > LABEL_VALUE_BYTES + 2 ||
		slice_equals(string, other, strlen(other)))
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
	return place == LABEL_NONE ? "" : place == LABEL_OTHER ? other : label->value[place];
}
