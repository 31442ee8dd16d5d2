/* SPDX-License-Identifier: PostgreSQL */
#include "base64.h"

#include <endian.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>

#include "memory.h"

/* The six bits of a digit; -1 for every other byte. */
/* clang-format off */
static const int8_t digit[256] = {
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 62, -1, -1, -1, 63,
	52, 53, 54, 55, 56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1, -1,
	-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
	15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, -1,
	-1, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
	41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
};
/* clang-format on */

/* The 24 bits of four digits, or less than 0: a -1 among them leaves its sign. */
static inline int32_t
decode_four(const unsigned char *text)
{
	return (int32_t) ((uint32_t) digit[text[0]] << 18 | (uint32_t) digit[text[1]] << 12 |
					  (uint32_t) digit[text[2]] << 6 | (uint32_t) digit[text[3]]);
}

/*
 * The last group, which may be padded: its bytes and how many, or 0. The bits that padding leaves
 * over must be zero, or several texts would stand for the same bytes.
 */
static size_t
decode_last(const unsigned char *text, unsigned char *bytes)
{
	size_t padding = text[3] != '=' ? 0 : text[2] != '=' ? 1 : 2;
	const unsigned char filled[4] = {text[0], text[1], padding == 2 ? 'A' : text[2],
									 padding > 0 ? 'A' : text[3]};
	int32_t bits = decode_four(filled);

	if (bits < 0 || (bits & ((1 << (8 * padding)) - 1)) != 0)
	{
		return 0;
	}
	for (size_t i = 0; i < 3 - padding; i++)
	{
		bytes[i] = (unsigned char) (bits >> (16 - 8 * i));
	}
	return 3 - padding;
}

bool
base64_decode(const char *text, size_t size, unsigned char *bytes, size_t *decoded)
{
	const unsigned char *at = (const unsigned char *) text;
	const unsigned char *begin = bytes;
	size_t last;

	*decoded = 0;
	if (size == 0)
	{
		return true;
	}
	if (size % 4 != 0)
	{
		return false;
	}
	for (const unsigned char *end = at + size - 4; at < end; at += 4, bytes += 3)
	{
		int32_t bits = decode_four(at);
		/* Four bytes at once, of which the last one belongs to the next group. */
		uint32_t wire = htobe32((uint32_t) bits << 8);

		if (bits < 0)
		{
			return false;
		}
		memcpy(bytes, &wire, sizeof(wire));
	}
	last = decode_last(at, bytes);
	*decoded = (size_t) (bytes - begin) + last;
	return last > 0;
}

char *
base64_encode(const void *bytes, size_t size)
{
	char *text = memory_new((size + 2) / 3 * 4 + 1);

	EVP_EncodeBlock((unsigned char *) text, bytes, (int) size);
	return text;
}
