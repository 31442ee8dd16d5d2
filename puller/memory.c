/* SPDX-License-Identifier: PostgreSQL */
#include "memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
memory_exhausted(void)
{
	static const char text[] = "inbox-puller: out of memory; nothing unfinished is acknowledged\n";

	/* Nothing to be done if even this cannot be written. */
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
	{
	}
	_exit(3);
}

void *
memory_checked(void *memory)
{
	if (memory == NULL)
	{
		memory_exhausted();
	}
	return memory;
}

void *
memory_new(size_t size)
{
	return memory_checked(calloc(1, size > 0 ? size : 1));
}

void *
memory_resize(void *old, size_t size)
{
	return memory_checked(realloc(old, size > 0 ? size : 1));
}

char *
memory_copy(const char *bytes, size_t size)
{
	char *copy = memory_checked(malloc(size + 1));

	if (size > 0)
	{
		memcpy(copy, bytes, size);
	}
	copy[size] = '\0';
	return copy;
}

char *
memory_copy_text(const char *text)
{
	return text != NULL ? memory_copy(text, strlen(text)) : NULL;
}

void
memory_forget(char *secret)
{
	if (secret != NULL)
	{
		explicit_bzero(secret, strlen(secret));
	}
	free(secret);
}

char *
memory_format(const char *format, ...)
{
	va_list arguments;
	char *text;
	int size;

	va_start(arguments, format);
	size = vasprintf(&text, format, arguments);
	va_end(arguments);
	return memory_checked(size >= 0 ? text : NULL);
}
