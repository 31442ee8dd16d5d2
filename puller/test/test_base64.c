/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"

#define DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/* Decodes into memory of exactly the promised size, so that a sanitizer sees a byte too many. */
static bool
decode(const char *text, size_t size, unsigned char **bytes, size_t *decoded)
{
	*bytes = malloc(BASE64_DECODED_MAX(size) > 0 ? BASE64_DECODED_MAX(size) : 1);
	assert_non_null(*bytes);
	return base64_decode(text, size, *bytes, decoded);
}

static bool
is_refused(const char *text, size_t size)
{
	unsigned char *bytes;
	size_t decoded;
	bool sound = decode(text, size, &bytes, &decoded);

	free(bytes);
	return !sound;
}

static void
test_vectors_of_the_standard(void **state)
{
	static const char *const vectors[][2] = {
		{"", ""},
		{"Zg==", "f"},
		{"Zm8=", "fo"},
		{"Zm9v", "foo"},
		{"Zm9vYg==", "foob"},
		{"Zm9vYmE=", "fooba"},
		{"Zm9vYmFy", "foobar"},
		{"+/+/", "\xfb\xff\xbf"},
	};

	(void) state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
	{
		unsigned char *bytes;
		size_t decoded;

		assert_true(decode(vectors[i][0], strlen(vectors[i][0]), &bytes, &decoded));
		assert_int_equal(decoded, strlen(vectors[i][1]));
		assert_memory_equal(bytes, vectors[i][1], decoded);
		free(bytes);
	}
}

static void
test_malformed_is_refused(void **state)
{
	static const char *const malformed[] = {
		/* no padding, too much, in the wrong place, alone */
		"Zg", "Zm8", "Z", "Zg=", "Zm9v=", "Zm9v==", "Zm9v===", "Zm9v====", "Z===", "====", "=",
		"==", "=Zm8", "Z=m8", "Zg==Zm9v", "Zm8=Zm9v", "Zg=A", "Zg==\n",
		/* white space */
		"Zm9v\n", "Zm9v\r\n", " Zm9", "Zm 9", "Zm9v Zm9", "Zm9\t", "\nZm9",
		/* the URL alphabet, junk, bytes above ASCII */
		"-_-_", "Zm9-", "Zm9_", "Zm9!", "Zm9.", "Zm9v!!!!", "Z\xc3\xa9v", "\xff\xff\xff\xff",
		"Zm9v%3D%", "Zm9,",
		/* bits left over behind the last byte */
		"Zh==", "Zn==", "Z/==", "Zm9=", "Zm/=", "AB==", "AAB=", "AAAAAB=="};

	(void) state;
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
	{
		if (!is_refused(malformed[i], strlen(malformed[i])))
		{
			fail_msg("taken: \"%s\"", malformed[i]);
		}
	}
	assert_true(is_refused("Zm\0v", 4));
	assert_true(is_refused("\0\0\0\0", 4));
}

/* Of all texts of one group, exactly one stands for given bytes. */
static void
test_every_byte_has_one_text(void **state)
{
	static const char alphabet[] = DIGITS;
	unsigned seen[256] = {0};

	(void) state;
	for (int first = 0; first < 256; first++)
	{
		for (int second = 0; second < 256; second++)
		{
			const char text[4] = {(char) first, (char) second, '=', '='};
			unsigned char byte[3];
			size_t decoded;
			bool sound = base64_decode(text, 4, byte, &decoded);
			bool expected = first != 0 && second != 0 && strchr(alphabet, first) != NULL &&
							strchr(alphabet, second) != NULL &&
							(strchr(alphabet, second) - alphabet) % 16 == 0;

			assert_int_equal(sound, expected);
			if (sound)
			{
				assert_int_equal(decoded, 1);
				seen[byte[0]]++;
			}
		}
	}
	for (int byte = 0; byte < 256; byte++)
	{
		assert_int_equal(seen[byte], 1);
	}
}

static void
test_round_trip_against_openssl(void **state)
{
	uint64_t seed = 1;

	(void) state;
	for (size_t size = 0; size < 600; size++)
	{
		unsigned char bytes[600];
		unsigned char text[804];
		unsigned char *back;
		size_t decoded;
		int length;

		for (size_t i = 0; i < size; i++)
		{
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			bytes[i] = (unsigned char) (seed >> 56);
		}
		length = EVP_EncodeBlock(text, bytes, (int) size);
		assert_true(decode((const char *) text, (size_t) length, &back, &decoded));
		assert_int_equal(decoded, size);
		assert_memory_equal(back, bytes, size);
		free(back);
	}
}

static void
test_cut_short_is_refused_or_shorter(void **state)
{
	static const char text[] = "Zm9vYmFyIGJheiBxdXg=";

	(void) state;
	for (size_t size = 1; size < sizeof(text) - 1; size++)
	{
		assert_int_equal(is_refused(text, size), size % 4 != 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors_of_the_standard),
		cmocka_unit_test(test_malformed_is_refused),
		cmocka_unit_test(test_every_byte_has_one_text),
		cmocka_unit_test(test_round_trip_against_openssl),
		cmocka_unit_test(test_cut_short_is_refused_or_shorter),
	};

	return cmocka_run_group_tests_name("base64", tests, NULL, NULL);
}
