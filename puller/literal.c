/* SPDX-License-Identifier: PostgreSQL */
#include "literal.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "utf8.h"

#define EACH_BYTE UINT64_C(0x0101010101010101)
#define HIGH_BITS UINT64_C(0x8080808080808080)

/*
 * Whether one of eight bytes is a quote, a backslash, a control character or not ASCII.
 * Subtracting from each byte borrows into its high bit where the byte was too small.
 */
static bool
has_special(uint64_t word)
{
	uint64_t quote = word ^ (EACH_BYTE * '"');
	uint64_t backslash = word ^ (EACH_BYTE * '\\');

	return ((((quote - EACH_BYTE) & ~quote) | ((backslash - EACH_BYTE) & ~backslash) |
			 ((word - EACH_BYTE * 0x20) & ~word) | word) &
			HIGH_BITS) != 0;
}

static bool
is_special(unsigned char byte)
{
	return byte == '"' || byte == '\\' || byte < 0x20 || byte >= 0x80;
}

static const char *
skip_plain(const char *at, const char *end)
{
	while (end - at >= 8)
	{
		uint64_t word;

		memcpy(&word, at, sizeof(word));
		if (has_special(word))
		{
			break;
		}
		at += 8;
	}
	while (at < end && !is_special((unsigned char) *at))
	{
		at++;
	}
	return at;
}

/* The code unit of "\uXXXX" at "at", or -1. */
static int
read_unit(const char *at, const char *end)
{
	int unit = 0;

	if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
	{
		return -1;
	}
	for (int i = 2; i < 6; i++)
	{
		char byte = at[i];
		int value = byte >= '0' && byte <= '9'	 ? byte - '0'
					: byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
					: byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
												 : -1;

		if (value < 0)
		{
			return -1;
		}
		unit = unit * 16 + value;
	}
	return unit;
}

static bool
is_high_surrogate(int unit)
{
	return unit >= 0xD800 && unit <= 0xDBFF;
}

static bool
is_low_surrogate(int unit)
{
	return unit >= 0xDC00 && unit <= 0xDFFF;
}

/*
 * The code point of the escape at "at", which is moved behind it; or -1 when JSON has no such
 * escape. A surrogate that has no partner is its own code point.
 */
static int32_t
read_escape(const char **at, const char *end)
{
	static const char named[] = "\"\\/bfnrt";
	static const char stands_for[] = "\"\\/\b\f\n\r\t";
	const char *found;
	int unit;
	int partner;

	if (end - *at < 2)
	{
		return -1;
	}
	found = memchr(named, (*at)[1], sizeof(named) - 1);
	if (found != NULL)
	{
		*at += 2;
		return stands_for[found - named];
	}
	unit = read_unit(*at, end);
	if (unit < 0)
	{
		return -1;
	}
	*at += 6;
	partner = is_high_surrogate(unit) ? read_unit(*at, end) : -1;
	if (is_low_surrogate(partner))
	{
		*at += 6;
		return 0x10000 + ((unit - 0xD800) << 10) + (partner - 0xDC00);
	}
	return unit;
}

const char *
literal_scan(const char *at, const char *end, unsigned *flaws, const char **fault)
{
	for (at = skip_plain(at + 1, end); at < end; at = skip_plain(at, end))
	{
		if (*at == '"')
		{
			return at + 1;
		}
		if (*at == '\\')
		{
			int32_t point = read_escape(&at, end);

			if (point < 0)
			{
				*fault = "an escape that JSON does not know";
				return NULL;
			}
			*flaws |= point == 0 ? FLAW_NUL : 0;
			*flaws |= point >= 0xD800 && point <= 0xDFFF ? FLAW_SURROGATE : 0;
		}
		else if ((unsigned char) *at < 0x20)
		{
			*flaws |= FLAW_CONTROL;
			at++;
		}
		else
		{
			size_t length = utf8_character(at, (size_t) (end - at));

			*flaws |= length == 0 ? FLAW_UTF8 : 0;
			at += length == 0 ? 1 : length;
		}
	}
	*fault = "a string without an end";
	return NULL;
}

const char *
literal_skip(const char *at, const char *end)
{
	const char *begin = at + 1;

	for (at = begin; (at = memchr(at, '"', (size_t) (end - at))) != NULL; at++)
	{
		const char *run = at;

		while (run > begin && run[-1] == '\\')
		{
			run--;
		}
		if ((at - run) % 2 == 0)
		{
			return at + 1;
		}
	}
	return end;
}

void
literal_open(struct literal_reader *reader, const char *literal, size_t length)
{
	*reader = (struct literal_reader){.at = literal + 1, .end = literal + length - 1};
}

/* Keeps the UTF-8 of a code point to be read byte by byte. */
static void
keep_pending(struct literal_reader *reader, int32_t point)
{
	static const unsigned char lead[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
	unsigned size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	for (unsigned i = size - 1; i > 0; i--, point >>= 6)
	{
		reader->pending[i] = (unsigned char) (0x80 | (point & 0x3F));
	}
	reader->pending[0] = (unsigned char) (lead[size] | point);
	reader->pending_size = (unsigned char) size;
	reader->pending_at = 0;
}

int
literal_next(struct literal_reader *reader)
{
	if (reader->pending_at < reader->pending_size)
	{
		return reader->pending[reader->pending_at++];
	}
	if (reader->at >= reader->end)
	{
		return -1;
	}
	if (*reader->at != '\\')
	{
		return (unsigned char) *reader->at++;
	}
	keep_pending(reader, read_escape(&reader->at, reader->end));
	return reader->pending[reader->pending_at++];
}
