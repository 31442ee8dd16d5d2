/* SPDX-License-Identifier: PostgreSQL */
#include "secret.h"

#include <json-c/json.h>
#include <string.h>

static bool
repeats(const char *text, const char *secret)
{
	return secret != NULL && strstr(text, secret) != NULL;
}

/* Of a header "Authorization: bearer …" what is behind the last blank. */
static bool
repeats_header(const struct credential *credential, const char *text)
{
	struct json_object *headers;

	if (!json_object_object_get_ex(credential_subject(credential), "headers", &headers))
	{
		return false;
	}
	json_object_object_foreach(headers, name, value)
	{
		const char *sent = json_object_get_string(value);
		const char *blank = strrchr(sent, ' ');

		(void) name;
		if (repeats(text, blank != NULL ? blank + 1 : sent))
		{
			return true;
		}
	}
	return false;
}

bool
secret_is_in(const char *text, const struct credential *credential, const char *sent)
{
	return repeats(text, sent) || repeats_header(credential, text) ||
		   repeats(text, credential_text(credential, "refresh_token")) ||
		   repeats(text, credential_text(credential, "client_secret")) ||
		   repeats(text, credential_text(credential, "private_key"));
}
