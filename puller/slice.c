/* SPDX-License-Identifier: PostgreSQL */
#include "slice.h"

#include <string.h>

#include "literal.h"
#include "memory.h"

/* What a byte outside of strings is; a table, for most bytes of an indented response are spaces. */
enum class
{
	CLASS_WORD,
	CLASS_BETWEEN, /* values */
	CLASS_STRING,
	CLASS_OPEN,
	CLASS_CLOSE
};

static const unsigned char class_of[256] = {
	[' '] = CLASS_BETWEEN, ['\n'] = CLASS_BETWEEN, ['\r'] = CLASS_BETWEEN, ['\t'] = CLASS_BETWEEN,
	[','] = CLASS_BETWEEN, [':'] = CLASS_BETWEEN,  ['"'] = CLASS_STRING,   ['{'] = CLASS_OPEN,
	['['] = CLASS_OPEN,	   ['}'] = CLASS_CLOSE,	   [']'] = CLASS_CLOSE};

static enum class class_at(const char *at)
{
	return (enum class) class_of[(unsigned char) *at];
}

static const char *
skip_container(const char *at, const char *end)
{
	size_t depth = 0;

	while (at < end)
	{
		enum class class = class_at(at);

		if (class == CLASS_STRING)
		{
			at = literal_skip(at, end);
			continue;
		}
		at++;
		if (class >= CLASS_OPEN)
		{
			depth += class == CLASS_OPEN ? 1 : (size_t) -1;
			if (depth == 0)
			{
				break;
			}
		}
	}
	return at;
}

static const char *
skip_word(const char *at, const char *end)
{
	while (at < end && class_at(at) != CLASS_BETWEEN && class_at(at) != CLASS_CLOSE)
	{
		at++;
	}
	return at;
}

/* Takes the next value; false at the closing bracket. */
static bool
take_value(struct slice_walk *walk, struct slice *value)
{
	const char *at = walk->at;
	const char *end = walk->end;

	while (at < end && class_at(at) == CLASS_BETWEEN)
	{
		at++;
	}
	walk->at = at;
	if (at >= end)
	{
		return false;
	}
	value->start = at;
	switch (class_at(at))
	{
		case CLASS_STRING:
			walk->at = literal_skip(at, end);
			break;
		case CLASS_OPEN:
			walk->at = skip_container(at, end);
			break;
		case CLASS_WORD:
		case CLASS_BETWEEN:
		case CLASS_CLOSE:
			walk->at = skip_word(at, end);
	}
	value->length = (size_t) (walk->at - value->start);
	return true;
}

void
slice_enter(struct slice_walk *walk, const struct slice *container)
{
	walk->at = container->start + 1;
	walk->end = container->start + container->length - 1;
}

bool
slice_next_member(struct slice_walk *walk, struct slice *name, struct slice *value)
{
	return take_value(walk, name) && take_value(walk, value);
}

bool
slice_next_element(struct slice_walk *walk, struct slice *value)
{
	return take_value(walk, value);
}

static bool
has_escapes(const struct slice *string)
{
	return memchr(string->start, '\\', string->length) != NULL;
}

static int
compare_bytes(const char *left, size_t left_size, const char *right, size_t right_size)
{
	int order = memcmp(left, right, left_size < right_size ? left_size : right_size);

	return order != 0 ? order : (left_size > right_size) - (left_size < right_size);
}

int
slice_compare(const struct slice *left, const struct slice *right)
{
	struct literal_reader left_reader;
	struct literal_reader right_reader;
	int left_byte;
	int right_byte;

	if (!has_escapes(left) && !has_escapes(right))
	{
		return compare_bytes(left->start + 1, left->length - 2, right->start + 1,
							 right->length - 2);
	}
	literal_open(&left_reader, left->start, left->length);
	literal_open(&right_reader, right->start, right->length);
	do
	{
		left_byte = literal_next(&left_reader);
		right_byte = literal_next(&right_reader);
	} while (left_byte == right_byte && left_byte >= 0);
	return left_byte - right_byte;
}

bool
slice_equals(const struct slice *string, const char *text, size_t size)
{
	struct literal_reader reader;

	if (string->length < size + 2)
	{
		return false;
	}
	if (!has_escapes(string))
	{
		return string->length == size + 2 && memcmp(string->start + 1, text, size) == 0;
	}
	literal_open(&reader, string->start, string->length);
	for (size_t i = 0; i < size; i++)
	{
		if (literal_next(&reader) != (unsigned char) text[i])
		{
			return false;
		}
	}
	return literal_next(&reader) < 0;
}

char *
slice_text(const struct slice *string, size_t *size)
{
	/* An escape is never shorter than what it stands for. */
	char *text = memory_copy(string->start + 1, string->length - 2);
	struct literal_reader reader;
	int byte;

	*size = string->length - 2;
	if (!has_escapes(string))
	{
		return text;
	}
	*size = 0;
	literal_open(&reader, string->start, string->length);
	while ((byte = literal_next(&reader)) >= 0)
	{
		text[(*size)++] = (char) byte;
	}
	text[*size] = '\0';
	return text;
}

size_t
slice_find(const struct slice *object, const char *name, size_t size, struct slice *value)
{
	struct slice_walk walk;
	struct slice found_name;
	struct slice found;
	size_t times = 0;

	slice_enter(&walk, object);
	while (slice_next_member(&walk, &found_name, &found))
	{
		if (slice_equals(&found_name, name, size))
		{
			*value = found;
			times++;
		}
	}
	return times;
}
