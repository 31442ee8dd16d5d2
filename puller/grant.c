/* SPDX-License-Identifier: PostgreSQL */
#include "grant.h"

#include <stdlib.h>
#include <string.h>

#include "credential_file.h"
#include "memory.h"
#include "timestamp.h"

/* Nobody says less, and a token that is refused earlier is renewed all the same. */
#define LIFETIME_UNKNOWN_S 3600
/* None is given that is shorter. */
#define LIFETIME_LEAST_S 60
/* What is longer than a day is not believed. */
#define LIFETIME_MAX_S 86400

void
grant_free(struct grant *grant)
{
	memory_forget(grant->token);
	free(grant->error);
	*grant = (struct grant){0};
}

bool
grant_is_token(const char *token)
{
	if (token == NULL || *token == '\0')
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

/* ---- refusals ------------------------------------------------------------------------------- */

static bool
is_passing(const char *error)
{
	static const char *const passing[] = {"internal_failure", "server_error",
										  "temporarily_unavailable", NULL};

	for (const char *const *name = passing; error != NULL && *name != NULL; name++)
	{
		if (strcmp(error, *name) == 0)
		{
			return true;
		}
	}
	return false;
}

/* OAuth has {"error": "…", "error_description": "…"}, Google's APIs an object there. */
static void
read_refusal(struct grant *grant, const struct http_response *response)
{
	struct json_object *document = json_tokener_parse(response->body);
	struct json_object *error = NULL;
	const char *name;
	const char *text;

	json_object_object_get_ex(document, "error", &error);
	if (json_object_is_type(error, json_type_object))
	{
		name = credential_member(error, "status");
		text = credential_member(error, "message");
	}
	else
	{
		name = credential_member(document, "error");
		text = credential_member(document, "error_description");
	}
	grant->permanent = response->status >= 400 && response->status < 500 &&
					   response->status != 408 && response->status != 429 && !is_passing(name);
	grant->error =
		memory_format("HTTP %ld%s%s%s%s", response->status, name != NULL ? " " : "",
					  name != NULL ? name : "", text != NULL ? ": " : "", text != NULL ? text : "");
	json_object_put(document);
}

/* True when it was refused, or did not come. */
static bool
is_refused(struct grant *grant, const struct http_response *response)
{
	*grant = (struct grant){0};
	if (response->status == 0)
	{
		grant->error =
			memory_copy_text(response->too_large ? "the answer is too large" : response->error);
		return true;
	}
	if (response->status != 200)
	{
		read_refusal(grant, response);
		return true;
	}
	return false;
}

/* ---- tokens --------------------------------------------------------------------------------- */

static void
take_token(struct grant *grant, const char *token, int64_t lifetime_s)
{
	if (!grant_is_token(token))
	{
		grant->error = memory_copy_text("the answer holds no token");
		return;
	}
	grant->token = memory_copy_text(token);
	if (lifetime_s > LIFETIME_MAX_S)
	{
		lifetime_s = LIFETIME_MAX_S;
	}
	grant->lifetime_ms = lifetime_s > 0 ? lifetime_s * 1000 : 0;
}

void
grant_read(struct grant *grant, const struct http_response *response)
{
	struct json_object *document;
	struct json_object *seconds;
	int64_t lifetime = LIFETIME_UNKNOWN_S;

	if (is_refused(grant, response))
	{
		return;
	}
	document = json_tokener_parse(response->body);
	/* Some servers write the number as a text, which json-c takes for the number. */
	if (json_object_object_get_ex(document, "expires_in", &seconds))
	{
		lifetime = json_object_get_int64(seconds);
	}
	take_token(grant, credential_member(document, "access_token"), lifetime);
	json_object_put(document);
}

void
grant_read_impersonated(struct grant *grant, const struct http_response *response, time_t now)
{
	struct json_object *document;
	const char *time;
	int64_t microseconds;
	int64_t lifetime = LIFETIME_UNKNOWN_S;

	if (is_refused(grant, response))
	{
		return;
	}
	document = json_tokener_parse(response->body);
	time = credential_member(document, "expireTime");
	if (time != NULL && timestamp_parse(time, &microseconds))
	{
		lifetime = microseconds / 1000000 - (int64_t) now;
		/* By a clock that is ahead it would have ended already. */
		lifetime = lifetime > LIFETIME_LEAST_S ? lifetime : LIFETIME_LEAST_S;
	}
	take_token(grant, credential_member(document, "accessToken"), lifetime);
	json_object_put(document);
}

/* ---- subject tokens ------------------------------------------------------------------------- */

static void
read_subject(struct grant *grant, const struct credential *credential, const char *text)
{
	struct json_object *format = NULL;
	struct json_object *document = NULL;
	const char *field;

	json_object_object_get_ex(credential_subject(credential), "format", &format);
	field = credential_member(format, "subject_token_field_name");
	if (credential_member(format, "type") != NULL &&
		strcmp(credential_member(format, "type"), "json") == 0)
	{
		document = json_tokener_parse(text);
		text = credential_member(document, field);
	}
	if (text != NULL && text[strspn(text, " \t\r\n")] != '\0')
	{
		size_t size = strlen(text);

		/* A file has a line break at its end, which is no part of the token. */
		while (strchr(" \t\r\n", text[size - 1]) != NULL)
		{
			size--;
		}
		grant->token = memory_copy(text, size);
	}
	else
	{
		grant->error = memory_copy_text("the source of the subject token holds none");
	}
	json_object_put(document);
}

void
grant_read_subject(struct grant *grant, const struct credential *credential,
				   const struct http_response *response)
{
	if (!is_refused(grant, response))
	{
		read_subject(grant, credential, response->body);
	}
}

void
grant_read_file(struct grant *grant, const struct credential *credential)
{
	const char *path = credential_member(credential_subject(credential), "file");
	const char *wrong = NULL;
	char *text = credential_slurp(path, &wrong);

	*grant = (struct grant){0};
	if (text != NULL)
	{
		read_subject(grant, credential, text);
	}
	else
	{
		grant->error = memory_format("the subject token \"%s\" cannot be read: %s", path, wrong);
	}
	memory_forget(text);
}
