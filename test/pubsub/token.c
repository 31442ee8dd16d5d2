/* SPDX-License-Identifier: PostgreSQL */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "memory.h"
#include "problem.h"
#include "request.h"
#include "token.h"

#define DOMAIN "googleapis.com"

struct tokens
{
	char *path;
	char **revoked;
	size_t revoked_count;
};

struct tokens *
tokens_new(const char *path)
{
	struct tokens *tokens = memory_get(sizeof(*tokens));

	tokens->path = memory_copy(path);
	return tokens;
}

void
tokens_free(struct tokens *tokens)
{
	if (tokens == NULL)
		return;
	for (size_t i = 0; i < tokens->revoked_count; i++)
		free(tokens->revoked[i]);
	free(tokens->revoked);
	free(tokens->path);
	free(tokens);
}

const char *
token_of(const struct request *request)
{
	const char *header = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
													 MHD_HTTP_HEADER_AUTHORIZATION);

	if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0)
		return NULL;
	return header + 7 + strspn(header + 7, " ");
}

static bool
is_revoked(const struct tokens *tokens, const char *token)
{
	for (size_t i = 0; i < tokens->revoked_count; i++)
	{
		if (strcmp(tokens->revoked[i], token) == 0)
			return true;
	}
	return false;
}

static bool
is_in_file(const struct tokens *tokens, const char *token)
{
	FILE *file = fopen(tokens->path, "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	if (file == NULL)
		return false;
	while (!found && getline(&line, &room, file) >= 0)
	{
		line[strcspn(line, "\r\n")] = '\0';
		found = *line != '\0' && strcmp(line, token) == 0;
	}
	free(line);
	fclose(file);
	return found;
}

bool
token_check(struct tokens *tokens, const struct request *request, struct problem *problem)
{
	const char *token = token_of(request);

	if (token != NULL && !is_revoked(tokens, token) && is_in_file(tokens, token))
		return true;
	problem_set(problem, STATUS_UNAUTHENTICATED,
				token == NULL
					? "Request is missing required authentication credential. Expected OAuth 2 "
					  "access token."
					: "Request had invalid authentication credentials. Expected OAuth 2 access "
					  "token.");
	problem_detail(problem,
				   token == NULL			   ? "CREDENTIALS_MISSING"
				   : is_revoked(tokens, token) ? "ACCESS_TOKEN_EXPIRED"
											   : "ACCESS_TOKEN_TYPE_UNSUPPORTED",
				   DOMAIN, NULL);
	return false;
}

void
token_revoke(struct tokens *tokens, const struct request *request)
{
	const char *token = token_of(request);

	if (token == NULL || is_revoked(tokens, token))
		return;
	tokens->revoked =
		memory_resize(tokens->revoked, (tokens->revoked_count + 1) * sizeof(*tokens->revoked));
	tokens->revoked[tokens->revoked_count++] = memory_copy(token);
}
