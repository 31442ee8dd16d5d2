/* SPDX-License-Identifier: PostgreSQL */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

static void *
checked(void *memory)
{
	if (memory == NULL)
	{
		fputs("out of memory\n", stderr);
		exit(3);
	}
	return memory;
}

void *
memory_get(size_t size)
{
	return checked(calloc(1, size));
}

void *
memory_resize(void *old, size_t size)
{
	return checked(realloc(old, size));
}

char *
memory_copy(const char *text)
{
	return checked(strdup(text));
}

char *
memory_copy_bytes(const char *bytes, size_t len)
{
	char *copy = checked(malloc(len + 1));

	memcpy(copy, bytes, len);
	copy[len] = '\0';
	return copy;
}
