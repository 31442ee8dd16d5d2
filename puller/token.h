/* SPDX-License-Identifier: PostgreSQL */
/*
 * An access token for a credential: all the requests that it takes, one after the other, in the
 * loop. Nothing is tried again here; that is for who keeps the token.
 */
#ifndef INBOX_TOKEN_H
#define INBOX_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "credential.h"
#include "http.h"

/* What came of it; valid during the callback only. */
struct token_result
{
	const char *token;	 /* never to be logged; NULL when there is none */
	int64_t expires_ms;	 /* on clock_ms() */
	const char *account; /* whose it is, as the metadata server says; NULL where not asked */
	const char *error;	 /* for people, when there is none, with the remedy in "hint" */
	const char *hint;
	bool permanent;			/* it will not pass by itself */
	int64_t retry_after_ms; /* what the server asked for, or 0 */
};

typedef void (*token_callback)(void *context, const struct token_result *result);

struct token_spec
{
	const char *scope; /* must live as long as the request */
	bool self_signed;  /* a service account's own JWT will do, as for Google's APIs */
	bool account;	   /* asks the metadata server for the account, too */
	token_callback callback;
	void (*dropped)(void *context); /* instead, when http_free() ends it */
	void *context;
};

/* Takes the credential over. The callback comes once, at once where no request is needed. */
void token_fetch(struct http *http, struct credential *credential, const struct token_spec *spec);

#endif
