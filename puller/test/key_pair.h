/* SPDX-License-Identifier: PostgreSQL */
/*
 * An RSA key made for the test, for tests of what signs with it.
 */
#ifndef INBOX_TEST_KEY_PAIR_H
#define INBOX_TEST_KEY_PAIR_H

#include <json-c/json.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdlib.h>

#include "memory.h"

static inline EVP_PKEY *
key_pair(void)
{
	static EVP_PKEY *key;

	if (key == NULL)
	{
		key = EVP_RSA_gen(2048);
	}
	if (key == NULL)
	{
		abort();
	}
	return key;
}

/* What "write" puts out, until the end of the process. */
static inline char *
key_pair_text(int (*write)(BIO *out))
{
	BIO *out = BIO_new(BIO_s_mem());
	char *bytes;
	long size;
	char *text;

	if (write(out) != 1)
	{
		abort();
	}
	size = BIO_get_mem_data(out, &bytes);
	text = memory_copy(bytes, (size_t) size);
	BIO_free(out);
	return text;
}

static inline int
key_pair_write_private(BIO *out)
{
	return PEM_write_bio_PKCS8PrivateKey(out, key_pair(), NULL, NULL, 0, NULL, NULL);
}

static inline int
key_pair_write_public(BIO *out)
{
	return PEM_write_bio_PUBKEY(out, key_pair());
}

/* The private key as a JSON text, with its quotes. */
static inline const char *
key_pair_quoted(void)
{
	static struct json_object *quoted;

	if (quoted == NULL)
	{
		char *pem = key_pair_text(key_pair_write_private);

		quoted = json_object_new_string(pem);
		free(pem);
	}
	return json_object_to_json_string_ext(quoted, JSON_C_TO_STRING_PLAIN);
}

#endif
