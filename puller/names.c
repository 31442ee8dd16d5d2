/* SPDX-License-Identifier: PostgreSQL */
#include "names.h"

#include <stdlib.h>

/* Up to here comparing every pair is cheaper than sorting. */
#define FEW_NAMES 8

bool
names_add(struct names *names, const struct slice *name)
{
	if (names->count == NAMES_MAX)
	{
		return false;
	}
	names->name[names->count++] = *name;
	return true;
}

static int
compare_names(const void *left, const void *right)
{
	return slice_compare(left, right);
}

static bool
has_pair(const struct slice *name, size_t count)
{
	for (size_t i = 1; i < count; i++)
	{
		for (size_t j = 0; j < i; j++)
		{
			if (slice_compare(&name[i], &name[j]) == 0)
			{
				return true;
			}
		}
	}
	return false;
}

static bool
has_equal_neighbours(const struct slice *name, size_t count)
{
	for (size_t i = 1; i < count; i++)
	{
		if (slice_compare(&name[i - 1], &name[i]) == 0)
		{
			return true;
		}
	}
	return false;
}

bool
names_close(struct names *names, size_t mark)
{
	struct slice *name = names->name + mark;
	size_t count = names->count - mark;

	names->count = mark;
	if (count <= FEW_NAMES)
	{
		return has_pair(name, count);
	}
	qsort(name, count, sizeof(*name), compare_names);
	return has_equal_neighbours(name, count);
}
