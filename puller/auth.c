/* SPDX-License-Identifier: PostgreSQL */
#include "auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "memory.h"

#define TOKEN_MAX_BYTES 16384
#define LOOK_EVERY_MS 1000

void
auth_init(struct auth *auth, const char *token_file)
{
	*auth = (struct auth){.token_file = token_file, .looked_ms = INT64_MIN / 2};
}

static void
forget_token(struct auth *auth)
{
	if (auth->header != NULL)
	{
		explicit_bzero(auth->header, strlen(auth->header));
	}
	free(auth->header);
	auth->header = NULL;
}

void
auth_free(struct auth *auth)
{
	forget_token(auth);
}

static void
log_unreadable(struct auth *auth, const char *reason)
{
	if (auth->complained)
	{
		return;
	}
	auth->complained = true;
	log_event(
		LOG_ERROR, "token_unreadable", "file", LOG_TEXT, auth->token_file, "err", LOG_TEXT, reason,
		"hint", LOG_TEXT,
		"write a fresh access token into the file of --token-file; it is read again by itself",
		NULL);
}

/* A header may hold no control character: a token with one could smuggle in another header. */
static bool
is_token(const char *token)
{
	if (*token == '\0')
	{
		return false;
	}
	for (; *token != '\0'; token++)
	{
		if (*token <= ' ' || *token > '~')
		{
			return false;
		}
	}
	return true;
}

/* Takes the header over; the same one again is no new version. */
static void
take_token(struct auth *auth, char *header)
{
	if (auth->header == NULL || strcmp(auth->header, header) != 0)
	{
		auth->version++;
	}
	forget_token(auth);
	auth->header = header;
}

static void
read_token(struct auth *auth, int file)
{
	char bytes[TOKEN_MAX_BYTES + 1];
	ssize_t size = read(file, bytes, TOKEN_MAX_BYTES);

	if (size < 0)
	{
		log_unreadable(auth, strerror(errno));
		return;
	}
	while (size > 0 && strchr(" \t\r\n", bytes[size - 1]) != NULL)
	{
		size--;
	}
	bytes[size] = '\0';
	if (!is_token(bytes))
	{
		log_unreadable(auth, "the file holds no token");
		return;
	}
	auth->complained = false;
	take_token(auth, memory_format("Authorization: Bearer %s", bytes));
	explicit_bzero(bytes, sizeof(bytes));
}

/* Reads the file when it is another one than before, or when "always". */
static void
look(struct auth *auth, bool always)
{
	struct stat status;
	int file = open(auth->token_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (file < 0 || fstat(file, &status) != 0)
	{
		log_unreadable(auth, strerror(errno));
	}
	else if (always || auth->header == NULL || status.st_ino != auth->inode ||
			 memcmp(&status.st_mtim, &auth->changed, sizeof(auth->changed)) != 0)
	{
		auth->inode = status.st_ino;
		auth->changed = status.st_mtim;
		read_token(auth, file);
	}
	if (file >= 0)
	{
		close(file);
	}
}

bool
auth_ready(struct auth *auth, int64_t now)
{
	if (auth->token_file == NULL)
	{
		return true;
	}
	if (now >= auth->looked_ms + LOOK_EVERY_MS)
	{
		auth->looked_ms = now;
		look(auth, false);
	}
	return auth->header != NULL;
}

int64_t
auth_deadline(const struct auth *auth)
{
	return auth->looked_ms + LOOK_EVERY_MS;
}

const char *
auth_header(const struct auth *auth)
{
	return auth->header;
}

const char *
auth_kind(const struct auth *auth)
{
	return auth->token_file != NULL ? "token_file" : "none";
}

/* A token says nothing about its owner to anybody but the service. */
const char *
auth_account(const struct auth *auth)
{
	(void) auth;
	return NULL;
}

bool
auth_refused(struct auth *auth, unsigned version)
{
	if (auth->token_file != NULL && auth->version == version)
	{
		look(auth, true);
	}
	return auth->version != version;
}
