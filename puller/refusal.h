/* SPDX-License-Identifier: PostgreSQL */
/*
 * What Pub/Sub's error document says: what kind of error it is, which ack ids failed, how long to
 * wait, and for a 403 which permission is missing on which resource.
 */
#ifndef INBOX_REFUSAL_H
#define INBOX_REFUSAL_H

#include "http.h"
#include "pubsub.h"

#define REFUSAL_TEXT_SIZE 1024

/* What the call takes, where the service does not say it, and what it was sent with. */
struct refusal_need
{
	const char *permission; /* or NULL */
	const char *resource;
	const char *token; /* or NULL */
};

/* Sets outcome, failures and retry_after_ms, and writes the text for people. */
void refusal_read(struct pubsub_answer *answer, const struct http_response *response,
				  const struct refusal_need *need, char text[REFUSAL_TEXT_SIZE]);

/* However long the service or a proxy wants to be left alone, this is the limit. */
void refusal_set_pause(struct pubsub_answer *answer, double seconds);

#endif
