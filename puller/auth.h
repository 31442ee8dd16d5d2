/* SPDX-License-Identifier: PostgreSQL */
/*
 * The token that is sent to Pub/Sub, kept fresh: none to an emulator, one from a file
 * (--token-file), or one for the credentials that are found.
 *
 * It is renewed 225 s before it ends, in the background; until then, and while that fails, the old
 * one is used as long as it is good. The metadata server gives the same token again until about
 * four minutes before its end, so that asking earlier is in vain. Files of credentials are read
 * anew each time.
 */
#ifndef INBOX_AUTH_H
#define INBOX_AUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "backoff.h"
#include "config.h"
#include "credential.h"
#include "http.h"
#include "token_file.h"

/* Goes on with a request that was refused; "renewed": there is another token now. */
typedef void (*auth_callback)(void *context, bool renewed);

struct auth_waiter;
STAILQ_HEAD(auth_waiters, auth_waiter);

struct auth
{
	struct http *http;
	const char *credentials_file; /* --credentials-file, or NULL */
	bool anonymous;				  /* an emulator's */
	struct token_file file;		  /* its path is NULL: the credentials are used */
	const char *kind;			  /* "none", "token_file" or that of the credentials */
	char *account;				  /* or NULL */
	char *header;				  /* "Authorization: Bearer …"; NULL until there is a token */
	char *quota_header;			  /* "x-goog-user-project: …", or NULL */
	unsigned version;			  /* of the token: counts those there were */
	int64_t taken_ms;			  /* when this version came, if any did */
	int64_t expires_ms;			  /* CLOCK_NEVER: nobody knows */
	int64_t next_ms;			  /* when it is renewed, or the file looked at */
	int64_t forced_ms;			  /* after a refusal: not before */
	bool refused;				  /* the token at hand */
	bool fetching;
	bool permanent;			/* the last attempt failed for a reason that stays */
	struct backoff failing; /* attempts in a row without a token */
	struct backoff refusals;
	struct auth_waiters waiters;
};

void auth_init(struct auth *auth, struct http *http, const struct config *config);

/* After http_free(), which ends what is running. */
void auth_free(struct auth *auth);

/* Renews what is due; in each turn. */
void auth_step(struct auth *auth, int64_t now);

/* When it is due. */
int64_t auth_deadline(const struct auth *auth);

/* True when a request can be sent. */
bool auth_ready(const struct auth *auth, int64_t now);

/* There is no token, and will be none before a person has put something right. */
bool auth_is_hopeless(const struct auth *auth, int64_t now);

/* The header lines to send, or NULL for none; the first never to be logged. */
const char *auth_header(const struct auth *auth);
const char *auth_quota_header(const struct auth *auth);

/* The token that the first holds, which no log may show; NULL: none. */
const char *auth_token(const struct auth *auth);

/* For people: the kind of credentials, never NULL; "none" with an emulator, "token_file". */
const char *auth_kind(const struct auth *auth);

/* Whose credentials they are, as an email address; NULL where that is not known. */
const char *auth_account(const struct auth *auth);

/*
 * The service answered 401 to a request with the token of that version: renews it, unless another
 * request found out before, or a fresh one was refused as well a moment ago. Calls back when it is
 * known, perhaps at once; or "dropped", when the process ends before.
 */
void auth_refused(struct auth *auth, unsigned version, auth_callback callback,
				  void (*dropped)(void *context), void *context);

#endif
