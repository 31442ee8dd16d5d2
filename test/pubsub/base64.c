/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "memory.h"

static const char url_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* What each byte becomes in the standard alphabet; 0 = not of either alphabet. */
static const char *
standard(void)
{
	static char map[256];

	if (map['A'] == 0)
	{
		for (const char *c = url_alphabet; *c != '\0'; c++)
			map[(unsigned char) *c] = *c;
		map['-'] = map['+'] = '+';
		map['_'] = map['/'] = '/';
	}
	return map;
}

bool
base64_normalise(const char *text, size_t len, char **result, size_t *result_len, size_t *bytes)
{
	const char *map = standard();
	size_t padded;
	char *out;

	while (len > 0 && text[len - 1] == '=' && (len % 4 == 0 || len % 4 == 3))
		len--;
	if (len % 4 == 1)
		return false;
	padded = (len + 3) / 4 * 4;
	out = memory_get(padded + 1);
	for (size_t i = 0; i < len; i++)
	{
		out[i] = map[(unsigned char) text[i]];
		if (out[i] == 0)
		{
			free(out);
			return false;
		}
	}
	memset(out + len, '=', padded - len);
	*result = out;
	*result_len = padded;
	*bytes = len / 4 * 3 + (len % 4 > 1 ? len % 4 - 1 : 0);
	return true;
}

void
base64_encode_url(const uint8_t *bytes, size_t len, char *out)
{
	for (size_t i = 0; i + 3 <= len; i += 3)
	{
		uint32_t three = (uint32_t) bytes[i] << 16 | (uint32_t) bytes[i + 1] << 8 | bytes[i + 2];

		*out++ = url_alphabet[three >> 18];
		*out++ = url_alphabet[three >> 12 & 63];
		*out++ = url_alphabet[three >> 6 & 63];
		*out++ = url_alphabet[three & 63];
	}
}

/* What each character stands for in the URL-safe alphabet, plus one; 0 = it is not of it. */
static const uint8_t *
url_values(void)
{
	static uint8_t values[256];

	if (values['A'] == 0)
	{
		for (uint8_t i = 0; i < 64; i++)
			values[(unsigned char) url_alphabet[i]] = i + 1;
	}
	return values;
}

bool
base64_decode_url(const char *text, size_t len, uint8_t *out)
{
	const uint8_t *values = url_values();

	for (size_t i = 0; i < len; i += 4)
	{
		uint32_t four = 0;

		for (size_t j = 0; j < 4; j++)
		{
			uint8_t value = values[(unsigned char) text[i + j]];

			if (value == 0)
				return false;
			four = four << 6 | (uint32_t) (value - 1);
		}
		*out++ = (uint8_t) (four >> 16);
		*out++ = (uint8_t) (four >> 8);
		*out++ = (uint8_t) four;
	}
	return true;
}
