/* SPDX-License-Identifier: PostgreSQL */
/*
 * What was answered to an exchange: a token and how long it is good for, or why there is none.
 */
#ifndef INBOX_GRANT_H
#define INBOX_GRANT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "credential.h"
#include "http.h"

struct grant
{
	char *token;		 /* NULL when there is none */
	int64_t lifetime_ms; /* from when the request was sent */
	char *error;		 /* when there is none: for people, without a secret of ours */
	bool permanent;		 /* it will not pass by itself */
};

void grant_free(struct grant *grant);

/* True for what may be sent in a header: printable, not empty, no spaces. */
bool grant_is_token(const char *token);

/* From a token endpoint or the metadata server: access_token, expires_in. */
void grant_read(struct grant *grant, const struct http_response *response);

/* From an impersonation: accessToken, expireTime. */
void grant_read_impersonated(struct grant *grant, const struct http_response *response, time_t now);

/* From the url of an external account's source. */
void grant_read_subject(struct grant *grant, const struct credential *credential,
						const struct http_response *response);

/* The same from its file. */
void grant_read_file(struct grant *grant, const struct credential *credential);

#endif
