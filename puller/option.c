/* SPDX-License-Identifier: PostgreSQL */
#include "option.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool
option_is_setting(const struct option_row *row)
{
	return row->kind < OPTION_CONFIG;
}

const struct option_row *
option_find(const char *name)
{
	for (size_t i = 0; i < option_count; i++)
	{
		if (strcmp(option_table[i].name, name) == 0)
		{
			return &option_table[i];
		}
	}
	return NULL;
}

static size_t
least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* How many letters to insert, delete or replace. Both are shorter than OPTION_NAME_SIZE. */
static size_t
distance(const char *from, const char *to)
{
	size_t columns = strlen(to) + 1;
	size_t row[OPTION_NAME_SIZE];

	for (size_t j = 0; j < columns; j++)
	{
		row[j] = j;
	}
	for (size_t i = 1; from[i - 1] != '\0'; i++)
	{
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j < columns; j++)
		{
			size_t above = row[j];

			row[j] = least(above + 1, row[j - 1] + 1, diagonal + (from[i - 1] != to[j - 1]));
			diagonal = above;
		}
	}
	return row[columns - 1];
}

const struct option_row *
option_nearest(const char *name)
{
	const struct option_row *nearest = NULL;
	size_t size = strlen(name);
	size_t best = size / 4 + 2;

	if (size >= OPTION_NAME_SIZE)
	{
		return NULL;
	}
	for (size_t i = 0; i < option_count; i++)
	{
		size_t apart = distance(name, option_table[i].name);

		if (option_is_setting(&option_table[i]) && apart < best)
		{
			nearest = &option_table[i];
			best = apart;
		}
	}
	return nearest;
}

void
option_environment_name(const struct option_row *row, char out[OPTION_NAME_SIZE])
{
	snprintf(out, OPTION_NAME_SIZE, "INBOX_%s", row->name);
	for (char *at = out; *at != '\0'; at++)
	{
		*at = *at == '-' ? '_' : (char) toupper((unsigned char) *at);
	}
}

void
option_log_name(const struct option_row *row, char out[OPTION_NAME_SIZE])
{
	snprintf(out, OPTION_NAME_SIZE, "%s", row->name);
	for (char *at = out; *at != '\0'; at++)
	{
		*at = *at == '-' ? '_' : *at;
	}
}
