/* SPDX-License-Identifier: PostgreSQL */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

void
text_add(struct buffer *out, const char *format, ...)
{
	char *text = NULL;
	int size;
	va_list arguments;

	va_start(arguments, format);
	size = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (size > 0)
	{
		(void) !buffer_append(out, text, (size_t) size);
	}
	if (size >= 0)
	{
		free(text);
	}
}
