/* SPDX-License-Identifier: PostgreSQL */
#include "trace.h"

#include <string.h>

#include "slice.h"

/* version "-" trace-id "-" parent-id "-" flags, in lower case; a later version may go on. */
static bool
is_traceparent(const char *text, size_t size)
{
	static const char form[] = "hh-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";

	if (size != sizeof(form) - 1)
	{
		return false;
	}
	for (size_t i = 0; i < size; i++)
	{
		if (form[i] == '-' ? text[i] != '-' : strchr("0123456789abcdef", text[i]) == NULL)
		{
			return false;
		}
	}
	return true;
}

const char *
trace_find(const char *attributes, char out[TRACE_SIZE])
{
	static const char *const names[] = {"googclient_traceparent", "traceparent"};
	struct slice object = {.start = attributes};
	struct slice value;

	object.length = attributes != NULL ? strlen(attributes) : 0;
	for (size_t i = 0; attributes != NULL && i < sizeof(names) / sizeof(names[0]); i++)
	{
		/* Nothing in it needs an escape, so what is between the quotes is the text. */
		if (slice_find(&object, names[i], strlen(names[i]), &value) > 0 &&
			slice_kind(&value) == '"' && is_traceparent(value.start + 1, value.length - 2))
		{
			memcpy(out, value.start + 1, TRACE_SIZE - 1);
			out[TRACE_SIZE - 1] = '\0';
			return out;
		}
	}
	return NULL;
}
