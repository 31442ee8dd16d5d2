/* SPDX-License-Identifier: PostgreSQL */
#include "trouble.h"

#include <string.h>

#include "clock.h"
#include "utf8.h"

/* As much as fits; what is not UTF-8 ends it. */
static void
copy(char *out, size_t room, const char *text)
{
	size_t size = 0;

	while (text[size] != '\0')
	{
		size_t length = utf8_character(text + size, strnlen(text + size, 4));

		if (length == 0 || size + length >= room)
		{
			break;
		}
		size += length;
	}
	memcpy(out, text, size);
	out[size] = '\0';
}

static void
read_field(struct trouble *trouble, const struct log_field *field)
{
	const struct
	{
		const char *name;
		char *out;
		size_t room;
	} places[] = {
		{"err", trouble->error, sizeof(trouble->error)},
		{"sqlstate", trouble->sqlstate, sizeof(trouble->sqlstate)},
		{"hint", trouble->hint, sizeof(trouble->hint)},
		{"key", trouble->key, sizeof(trouble->key)},
		{"message_id", trouble->message_id, sizeof(trouble->message_id)},
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
	{
		if (field->kind == LOG_TEXT && field->text != NULL &&
			strcmp(field->name, places[i].name) == 0)
		{
			copy(places[i].out, places[i].room, field->text);
		}
	}
}

/* Where one that says the same stands, or where a new one is made: the oldest gives way. */
static size_t
find_place(struct troubles *troubles, const struct trouble *trouble)
{
	for (size_t i = 0; i < troubles->count; i++)
	{
		const struct trouble *other = &troubles->trouble[i];

		/* With an SQLSTATE that says it; the text often has a value of the message in it. */
		if (strcmp(other->event, trouble->event) == 0 &&
			strcmp(other->sqlstate, trouble->sqlstate) == 0 &&
			(trouble->sqlstate[0] != '\0' || strcmp(other->error, trouble->error) == 0))
		{
			return i;
		}
	}
	if (troubles->count < TROUBLES_MAX)
	{
		troubles->trouble[troubles->count] = (struct trouble){0};
		return troubles->count++;
	}
	troubles->trouble[TROUBLES_MAX - 1] = (struct trouble){0};
	return TROUBLES_MAX - 1;
}

void
trouble_see(void *context, enum log_level level, const char *event, const struct log_field *fields,
			size_t count)
{
	struct troubles *troubles = context;
	struct trouble trouble = {.level = level, .at_ms = clock_real_us() / 1000};
	size_t place;

	if (level < LOG_WARNING)
	{
		return;
	}
	copy(trouble.event, sizeof(trouble.event), event);
	for (size_t i = 0; i < count; i++)
	{
		read_field(&trouble, &fields[i]);
	}
	place = find_place(troubles, &trouble);
	trouble.times = troubles->trouble[place].times + 1;
	memmove(&troubles->trouble[1], &troubles->trouble[0], place * sizeof(trouble));
	troubles->trouble[0] = trouble;
}
