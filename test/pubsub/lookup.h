/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_LOOKUP_H
#define PUBSUB_LOOKUP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct json_object;
struct lookup;
struct message;
struct service;
struct subscription;

/*
 * Verification of acknowledgements: what a client acknowledges has to be in its database by then.
 * The key of each acknowledged message is looked up on the primary at once, and on a standby when
 * that has replayed what the primary had flushed at the acknowledgement. A key that is not there
 * is a lost message: it is counted, recorded and reported on standard error. While a database is
 * away the lookups wait for it: what was acknowledged has to be there when it is back. A message
 * without the attribute, or with one that no text can hold, is looked up as mid:MESSAGE-ID.
 */
struct lookup_options
{
	const char *primary; /* connection strings */
	const char *standby; /* NULL: none */
	const char *sql;	 /* $1 keys text[], $2 message ids text[]; gives the keys that are there */
	const char *key;	 /* the attribute that holds the key */
};

struct lookup *lookup_new(struct service *service, const struct lookup_options *options);
void lookup_free(struct lookup *lookup);

/* Remembers an acknowledgement; lookup_settle() sends what has come together. */
void lookup_add(struct lookup *lookup, const struct subscription *subscription,
				const struct message *message);
void lookup_settle(struct lookup *lookup);

/* What to wait for (at most two), and the work to do after any wait. */
size_t lookup_descriptors(struct lookup *lookup, struct pollfd *descriptors);
void lookup_run(struct lookup *lookup);

/* Counts: looked up and pending per database, lost. */
struct json_object *lookup_render(const struct lookup *lookup);

#endif
