/* SPDX-License-Identifier: PostgreSQL */
/*
 * JSON Web Tokens of a service account (RFC 7519), signed by OpenSSL with RS256. They are good for
 * an hour, the longest Google takes.
 */
#ifndef INBOX_JWT_H
#define INBOX_JWT_H

#include <stdbool.h>
#include <time.h>

struct credential;

#define JWT_LIFETIME_S 3600

/* True for an RSA key in PEM, without a passphrase. */
bool jwt_key_is_usable(const char *pem);

/*
 * One that is itself the access token: Google's APIs take it without any request before. NULL when
 * the key cannot sign. free() it.
 */
char *jwt_self_signed(const struct credential *credential, const char *scope, time_t now);

/* One that the token endpoint at "audience" gives an access token for. The same. */
char *jwt_assertion(const struct credential *credential, const char *scope, const char *audience,
					time_t now);

#endif
