/* SPDX-License-Identifier: PostgreSQL */
/*
 * The requests by which one credential is given for another: what is sent where. Nothing is sent
 * here.
 */
#ifndef INBOX_EXCHANGE_H
#define INBOX_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "credential.h"

#define EXCHANGE_HEADERS_MAX 16

struct exchange
{
	const char *method;
	char *url;
	char *body;								 /* NULL for a GET */
	const char *content_type;				 /* of the body */
	char *headers[EXCHANGE_HEADERS_MAX + 1]; /* whole lines, ended by NULL */
	bool direct;							 /* never through a proxy */
	int64_t timeout_ms;
};

void exchange_free(struct exchange *exchange);

/* The metadata server's access token for the scope, and the email address of its account. */
void exchange_ask_machine(struct exchange *exchange, const char *scope);
void exchange_ask_account(struct exchange *exchange);

/* The refresh token of a CREDENTIAL_USER or CREDENTIAL_EXTERNAL_USER. */
void exchange_refresh(struct exchange *exchange, const struct credential *credential);

/* What jwt_assertion() made for exchange_token_url(). */
void exchange_assertion(struct exchange *exchange, const struct credential *credential,
						const char *assertion);

/* The subject token of a CREDENTIAL_EXTERNAL whose source is a url. */
void exchange_ask_subject(struct exchange *exchange, const struct credential *credential);

/* The subject token, for one of Google's. */
void exchange_subject(struct exchange *exchange, const struct credential *credential,
					  const char *subject, const char *scope);

/* The token of a service account, by the right of the bearer. */
void exchange_impersonate(struct exchange *exchange, const struct credential *credential,
						  const char *bearer, const char *scope);

/* Where the file, or its kind, has its tokens from. free() it. */
char *exchange_token_url(const struct credential *credential);

/* For how long the impersonated token is asked. */
int exchange_lifetime(const struct credential *credential);

#endif
