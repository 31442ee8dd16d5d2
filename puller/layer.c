/* SPDX-License-Identifier: PostgreSQL */
#include "layer.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "value.h"

/* Puts the place in front of what is wrong there. */
static bool
fail_at(const char *place, struct fault *fault)
{
	char *fact = memory_format("%s: %s", place, fault->fact);

	return fault_set(fault, fact, memory_copy_text(fault->remedy));
}

/* A list without any element, such as "key =" before its continuation lines, adds nothing. */
static bool
set_elements(const struct option_row *row, struct config *config, const char *text,
			 struct fault *fault)
{
	static const char separators[] = ",\r\n";

	while (*text != '\0')
	{
		size_t size;
		char *element;
		bool is_set;

		text += strspn(text, " \t,\r\n");
		size = strcspn(text, separators);
		element = memory_copy(text, size);
		text += size;
		while (size > 0 && strchr(" \t", element[size - 1]) != NULL)
		{
			element[--size] = '\0';
		}
		is_set = size == 0 || value_set(row, config, element, fault);
		free(element);
		if (!is_set)
		{
			return false;
		}
	}
	return true;
}

bool
layer_set(struct layer *layer, const struct option_row *row, const char *text, const char *place,
		  struct fault *fault)
{
	size_t index = (size_t) (row - option_table);
	bool is_list = row->kind == OPTION_KEYS;

	if (is_list && !layer->seen[index])
	{
		value_clear(row, layer->config);
	}
	layer->seen[index] = true;
	if (is_list && layer->splits_lists ? set_elements(row, layer->config, text, fault)
									   : value_set(row, layer->config, text, fault))
	{
		return true;
	}
	return fail_at(place, fault);
}

bool
layer_defaults(struct config *config, struct fault *fault)
{
	struct layer layer = {.config = config};

	for (size_t i = 0; i < option_count; i++)
	{
		const struct option_row *row = &option_table[i];

		if (row->initial != NULL && !layer_set(&layer, row, row->initial, row->name, fault))
		{
			return false;
		}
	}
	return true;
}

bool
layer_environment(struct config *config, struct fault *fault)
{
	struct layer layer = {.config = config, .splits_lists = true};

	for (size_t i = 0; i < option_count; i++)
	{
		const struct option_row *row = &option_table[i];
		char name[OPTION_NAME_SIZE];
		const char *text;

		option_environment_name(row, name);
		text = getenv(name);
		/* Files of variables often set the unused ones to nothing. */
		if (option_is_setting(row) && text != NULL && text[0] != '\0' &&
			!layer_set(&layer, row, text, name, fault))
		{
			return false;
		}
	}
	return true;
}
