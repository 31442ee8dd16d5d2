/* SPDX-License-Identifier: PostgreSQL */
/* Tokens that are signed here, verified by the openssl program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/ec.h>
#include <string.h>

#include "base64.h"
#include "credential.h"
#include "jwt.h"
#include "key_pair.h"
#include "load.h"

#define NOW 1767225600

static struct credential *
robot(void)
{
	struct fault fault = {NULL, NULL};
	char *text = memory_format("{\"type\": \"service_account\", \"client_email\": \"robot@p\", "
							   "\"private_key_id\": \"k\\\"1\", \"private_key\": %s}",
							   key_pair_quoted());
	struct credential *credential = credential_parse(text, "the file", &fault);

	assert_null(fault.fact);
	free(text);
	return credential;
}

/* Base64 of the alphabet for addresses; free() it. */
static char *
decode(const char *part, size_t part_size, size_t *size)
{
	char *text = memory_new(part_size + 4);
	unsigned char *bytes = memory_new(part_size + 4);

	for (size_t i = 0; i < part_size; i++)
	{
		assert_true(strchr("+/=", part[i]) == NULL);
		text[i] = part[i] == '-' ? '+' : part[i];
		text[i] = part[i] == '_' ? '/' : text[i];
	}
	while (part_size % 4 != 0)
	{
		text[part_size++] = '=';
	}
	assert_true(base64_decode(text, part_size, bytes, size));
	bytes[*size] = '\0';
	free(text);
	return (char *) bytes;
}

static void
verify(const char *text, size_t text_size, const char *signature, size_t signature_size)
{
	char *pem = key_pair_text(key_pair_write_public);
	char paths[3][64];
	char *command;

	write_file(paths[0], pem, strlen(pem));
	write_file(paths[1], signature, signature_size);
	write_file(paths[2], text, text_size);
	command = memory_format("openssl dgst -sha256 -verify %s -signature %s %s >/dev/null", paths[0],
							paths[1], paths[2]);
	assert_int_equal(system(command), 0);
	for (int i = 0; i < 3; i++)
	{
		unlink(paths[i]);
	}
	free(command);
	free(pem);
}

/* Frees the token. */
static void
expect(char *token, const char *claims)
{
	const char *first = strchr(token, '.');
	const char *second = strchr(first + 1, '.');
	size_t size;
	char *part = decode(token, (size_t) (first - token), &size);

	assert_string_equal(part, "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"k\\\"1\"}");
	free(part);
	part = decode(first + 1, (size_t) (second - first - 1), &size);
	assert_string_equal(part, claims);
	free(part);
	part = decode(second + 1, strlen(second + 1), &size);
	assert_int_equal(size, 256);
	verify(token, (size_t) (second - token), part, size);
	free(part);
	free(token);
}

static void
tokens_are_signed(void **state)
{
	struct credential *credential = robot();

	(void) state;
	expect(jwt_self_signed(credential, "https://sc", NOW),
		   "{\"iss\":\"robot@p\",\"scope\":\"https://sc\",\"iat\":1767225600,\"exp\":1767229200,"
		   "\"sub\":\"robot@p\"}");
	expect(jwt_assertion(credential, "sc", "https://oauth2.test/token", NOW),
		   "{\"iss\":\"robot@p\",\"scope\":\"sc\",\"iat\":1767225600,\"exp\":1767229200,"
		   "\"aud\":\"https://oauth2.test/token\"}");
	credential_free(credential);
}

static int
write_elliptic(BIO *out)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	int written = PEM_write_bio_PKCS8PrivateKey(out, key, NULL, NULL, 0, NULL, NULL);

	EVP_PKEY_free(key);
	return written;
}

/* With a passphrase; nobody is asked for it. */
static int
write_locked(BIO *out)
{
	return PEM_write_bio_PKCS8PrivateKey(out, key_pair(), EVP_aes_128_cbc(), "hush", 4, NULL, NULL);
}

static void
only_rsa_keys_are_usable(void **state)
{
	char *elliptic = key_pair_text(write_elliptic);
	char *locked = key_pair_text(write_locked);
	char *public = key_pair_text(key_pair_write_public);
	char *private = key_pair_text(key_pair_write_private);

	(void) state;
	assert_true(jwt_key_is_usable(private));
	assert_false(jwt_key_is_usable(elliptic));
	assert_false(jwt_key_is_usable(locked));
	assert_false(jwt_key_is_usable(public));
	assert_false(jwt_key_is_usable(""));
	free(elliptic);
	free(locked);
	free(public);
	free(private);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_signed),
		cmocka_unit_test(only_rsa_keys_are_usable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
