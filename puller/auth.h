/* SPDX-License-Identifier: PostgreSQL */
/*
 * The credentials sent to Pub/Sub: none to an emulator, or a bearer token from a file, which is
 * read again when it changes and when the service refuses it.
 */
#ifndef INBOX_AUTH_H
#define INBOX_AUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct auth
{
	const char *token_file;	 /* NULL: no credentials are sent */
	char *header;			 /* "Authorization: Bearer …"; NULL until a token was read */
	struct timespec changed; /* the file's time when it was read */
	ino_t inode;
	int64_t looked_ms;
	unsigned version; /* of the token: counts those that were read */
	bool complained;  /* about a file that cannot be used; once until it can */
};

void auth_init(struct auth *auth, const char *token_file);
void auth_free(struct auth *auth);

/* True when a request can be sent. Looks at the file again at most once a second. */
bool auth_ready(struct auth *auth, int64_t now);

/* When a token that is missing is looked for again. */
int64_t auth_deadline(const struct auth *auth);

/* The header line to send, or NULL for none; never to be logged. */
const char *auth_header(const struct auth *auth);

/* For people: the kind of credentials, never NULL; "none" with an emulator, "token_file". */
const char *auth_kind(const struct auth *auth);

/* Whose credentials they are, as an email address; NULL where that is not known. */
const char *auth_account(const struct auth *auth);

/*
 * The service answered 401 to a request with the token of that version: reads the file again,
 * unless another request found out before. True when there is another token now.
 */
bool auth_refused(struct auth *auth, unsigned version);

#endif
