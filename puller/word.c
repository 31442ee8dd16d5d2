/* SPDX-License-Identifier: PostgreSQL */
#include "word.h"

#include <string.h>

static bool
is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool
is_word_byte(char byte)
{
	return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		   byte == '-' || byte == '+' || byte == '.' || byte == '_';
}

size_t
word_length(const char *at, const char *end)
{
	const char *begin = at;

	while (at < end && is_word_byte(*at))
	{
		at++;
	}
	return (size_t) (at - begin);
}

static bool
pass_any(const char **at, const char *end, const char *bytes)
{
	if (*at < end && memchr(bytes, **at, strlen(bytes)) != NULL)
	{
		(*at)++;
		return true;
	}
	return false;
}

/* Passes at least one digit. */
static bool
pass_digits(const char **at, const char *end)
{
	const char *begin = *at;

	while (*at < end && is_digit(**at))
	{
		(*at)++;
	}
	return *at > begin;
}

static bool
is_number(const char *at, const char *end)
{
	pass_any(&at, end, "-");
	if (!pass_any(&at, end, "0") && !pass_digits(&at, end))
	{
		return false;
	}
	if (pass_any(&at, end, ".") && !pass_digits(&at, end))
	{
		return false;
	}
	if (pass_any(&at, end, "eE"))
	{
		pass_any(&at, end, "-+");
		if (!pass_digits(&at, end))
		{
			return false;
		}
	}
	return at == end;
}

bool
word_is(const char *word, size_t length, const char *expected)
{
	return length == strlen(expected) && memcmp(word, expected, length) == 0;
}

bool
word_is_sound(const char *word, size_t length)
{
	return is_number(word, word + length) || word_is(word, length, "true") ||
		   word_is(word, length, "false") || word_is(word, length, "null");
}

bool
word_is_integer(const char *word, size_t length, size_t digits)
{
	const char *at = word;
	const char *end = word + length;
	const char *first;

	pass_any(&at, end, "-");
	first = at;
	if (!pass_digits(&at, end) || at != end || (size_t) (end - first) > digits)
	{
		return false;
	}
	return *first != '0' || length == 1;
}
