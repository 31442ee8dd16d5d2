/* SPDX-License-Identifier: PostgreSQL */
#include "jwt.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdint.h>
#include <string.h>

#include "base64.h"
#include "credential.h"
#include "memory.h"

/* Otherwise OpenSSL would ask at the terminal, and wait. */
static int
refuse_passphrase(char *out, int room, int writing, void *context)
{
	(void) out;
	(void) room;
	(void) writing;
	(void) context;
	return -1;
}

/* NULL when it is none. */
static EVP_PKEY *
read_key(const char *pem)
{
	BIO *bytes = BIO_new_mem_buf(pem, -1);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bytes, NULL, refuse_passphrase, NULL);

	BIO_free(bytes);
	if (key != NULL && EVP_PKEY_base_id(key) != EVP_PKEY_RSA)
	{
		EVP_PKEY_free(key);
		key = NULL;
	}
	/* libpq and libcurl would take what is left here for errors of their own. */
	ERR_clear_error();
	return key;
}

bool
jwt_key_is_usable(const char *pem)
{
	EVP_PKEY *key = read_key(pem);

	EVP_PKEY_free(key);
	return key != NULL;
}

/* Base64 of the alphabet for addresses, without padding (RFC 7515). */
static char *
encode(const void *bytes, size_t size)
{
	char *text = base64_encode(bytes, size);

	for (char *at = text; *at != '\0'; at++)
	{
		if (*at == '+')
		{
			*at = '-';
		}
		else if (*at == '/')
		{
			*at = '_';
		}
		else if (*at == '=')
		{
			*at = '\0';
			break;
		}
	}
	return text;
}

static char *
encode_object(struct json_object *object)
{
	const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
																  JSON_C_TO_STRING_NOSLASHESCAPE);

	return encode(text, strlen(text));
}

static bool
sign_with(EVP_MD_CTX *context, EVP_PKEY *key, const char *text, unsigned char *signature,
		  size_t *size)
{
	return EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
		   EVP_DigestSign(context, signature, size, (const unsigned char *) text, strlen(text)) ==
			   1;
}

/* The signature, encoded, or NULL. */
static char *
sign(const char *pem, const char *text)
{
	EVP_PKEY *key = read_key(pem);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t size = key != NULL ? (size_t) EVP_PKEY_size(key) : 0;
	unsigned char *signature = memory_new(size + 1);
	char *encoded = NULL;

	if (key != NULL && sign_with(context, key, text, signature, &size))
	{
		encoded = encode(signature, size);
	}
	free(signature);
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return encoded;
}

/* Takes the claims over. */
static char *
make(const struct credential *credential, struct json_object *claims)
{
	const char *id = credential_text(credential, "private_key_id");
	struct json_object *header = json_object_new_object();
	char *parts[2];
	char *text;
	char *signature;
	char *token = NULL;

	json_object_object_add(header, "alg", json_object_new_string("RS256"));
	json_object_object_add(header, "typ", json_object_new_string("JWT"));
	if (id != NULL)
	{
		json_object_object_add(header, "kid", json_object_new_string(id));
	}
	parts[0] = encode_object(header);
	parts[1] = encode_object(claims);
	text = memory_format("%s.%s", parts[0], parts[1]);
	signature = sign(credential_text(credential, "private_key"), text);
	if (signature != NULL)
	{
		token = memory_format("%s.%s", text, signature);
	}
	free(parts[0]);
	free(parts[1]);
	free(text);
	free(signature);
	json_object_put(header);
	json_object_put(claims);
	return token;
}

static struct json_object *
new_claims(const struct credential *credential, const char *scope, time_t now)
{
	struct json_object *claims = json_object_new_object();

	json_object_object_add(claims, "iss",
						   json_object_new_string(credential_text(credential, "client_email")));
	json_object_object_add(claims, "scope", json_object_new_string(scope));
	json_object_object_add(claims, "iat", json_object_new_int64((int64_t) now));
	json_object_object_add(claims, "exp", json_object_new_int64((int64_t) now + JWT_LIFETIME_S));
	return claims;
}

char *
jwt_self_signed(const struct credential *credential, const char *scope, time_t now)
{
	struct json_object *claims = new_claims(credential, scope, now);

	json_object_object_add(claims, "sub",
						   json_object_new_string(credential_text(credential, "client_email")));
	return make(credential, claims);
}

char *
jwt_assertion(const struct credential *credential, const char *scope, const char *audience,
			  time_t now)
{
	struct json_object *claims = new_claims(credential, scope, now);

	json_object_object_add(claims, "aud", json_object_new_string(audience));
	return make(credential, claims);
}
