/* SPDX-License-Identifier: PostgreSQL */
#include "base64.h"

#include <openssl/evp.h>
#include <stdint.h>

#include "memory.h"

#define IS_DIGIT 64

/* The six bits of a digit plus IS_DIGIT; 0 for every other byte. */
static const uint8_t
	digit
		[256] =
			{
				['A'] = 64, 65,	 66,  67,  68,		   69,	70,	 71,		  72,		   73,	74,
				75,			76,	 77,  78,  79,		   80,	81,	 82,		  83,		   84,	85,
				86,			87,	 88,  89,  ['a'] = 90, 91,	92,	 93,		  94,		   95,	96,
				97,			98,	 99,  100, 101,		   102, 103, 104,		  105,		   106, 107,
				108,		109, 110, 111, 112,		   113, 114, 115,		  ['0'] = 116, 117, 118,
				119,		120, 121, 122, 123,		   124, 125, ['+'] = 126, ['/'] = 127,
};

/* The 24 bits of four digits, or -1. */
static inline int32_t
decode_four(const unsigned char *text)
{
	uint32_t a = digit[text[0]];
	uint32_t b = digit[text[1]];
	uint32_t c = digit[text[2]];
	uint32_t d = digit[text[3]];

	if ((a & b & c & d & IS_DIGIT) == 0)
	{
		return -1;
	}
	return (int32_t) ((a & 63) << 18 | (b & 63) << 12 | (c & 63) << 6 | (d & 63));
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

		if (bits < 0)
		{
			return false;
		}
		bytes[0] = (unsigned char) (bits >> 16);
		bytes[1] = (unsigned char) (bits >> 8);
		bytes[2] = (unsigned char) bits;
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
