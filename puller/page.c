/* SPDX-License-Identifier: PostgreSQL */
#include "page.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* 44 characters and a NUL. */
#define HASH_SIZE 48

/* The names are made by ld -r -b binary of the file's own. */
extern const char _binary_status_page_html_start[];
extern const char _binary_status_page_html_end[];

const char *
page_bytes(void)
{
	return _binary_status_page_html_start;
}

size_t
page_size(void)
{
	return (size_t) (_binary_status_page_html_end - _binary_status_page_html_start);
}

/* Of what stands between the tags, byte for byte. */
static void
hash_element(const char *begin, const char *end, char hash[HASH_SIZE])
{
	const char *bytes = page_bytes();
	const char *start = memmem(bytes, page_size(), begin, strlen(begin));
	const char *stop = memmem(bytes, page_size(), end, strlen(end));
	unsigned char digest[SHA256_DIGEST_LENGTH];

	if (start == NULL || stop == NULL || start > stop)
	{
		abort(); /* the page is part of this program */
	}
	start += strlen(begin);
	SHA256((const unsigned char *) start, (size_t) (stop - start), digest);
	EVP_EncodeBlock((unsigned char *) hash, digest, sizeof(digest));
}

char *
page_policy(void)
{
	char script[HASH_SIZE];
	char style[HASH_SIZE];

	hash_element("<script>", "</script>", script);
	hash_element("<style>", "</style>", style);
	return memory_format("default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; "
						 "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
						 "frame-ancestors 'none'",
						 script, style);
}
