/* SPDX-License-Identifier: PostgreSQL */
/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. PostgreSQL
 * refuses the rest, and so do readers of JSON.
 */
#ifndef INBOX_UTF8_H
#define INBOX_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The length of the character at the start of "text", 1 to 4; 0 when it is not well-formed. */
static inline size_t
utf8_character(const char *text, size_t size)
{
	const unsigned char *byte = (const unsigned char *) text;
	unsigned char low = 0x80, high = 0xBF; /* bounds of the second byte */
	size_t length;

	if (size == 0 || byte[0] < 0x80)
	{
		return size == 0 ? 0 : 1;
	}
	if (byte[0] < 0xC2 || byte[0] > 0xF4)
	{
		return 0;
	}
	length = byte[0] < 0xE0 ? 2 : byte[0] < 0xF0 ? 3 : 4;
	low = byte[0] == 0xE0 ? 0xA0 : byte[0] == 0xF0 ? 0x90 : low;
	high = byte[0] == 0xED ? 0x9F : byte[0] == 0xF4 ? 0x8F : high;
	if (size < length || byte[1] < low || byte[1] > high)
	{
		return 0;
	}
	for (size_t i = 2; i < length; i++)
	{
		if (byte[i] < 0x80 || byte[i] > 0xBF)
		{
			return 0;
		}
	}
	return length;
}

static inline bool
utf8_valid(const char *text, size_t size)
{
	while (size > 0)
	{
		size_t length = utf8_character(text, size);

		if (length == 0)
		{
			return false;
		}
		text += length;
		size -= length;
	}
	return true;
}

/* Takes the beginning of a character off the end of a text that was cut by bytes. */
static inline void
utf8_trim(char *text)
{
	size_t size = strlen(text), last = size;

	while (last > 0 && size - last < 3 && ((unsigned char) text[last - 1] & 0xC0) == 0x80)
	{
		last--;
	}
	if (last > 0 && utf8_character(text + last - 1, size - last + 1) != size - last + 1)
	{
		text[last - 1] = '\0';
	}
}

#endif
