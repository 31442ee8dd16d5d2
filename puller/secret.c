/* SPDX-License-Identifier: PostgreSQL */
#include "secret.h"

#include <curl/curl.h>
#include <json-c/json.h>
#include <string.h>

#include "base64.h"
#include "memory.h"

bool
secret_is_repeated(const char *text, const char *secret)
{
	char *escaped;
	bool repeated;

	if (secret == NULL || strstr(text, secret) != NULL)
	{
		return secret != NULL;
	}
	/* In a form, "1//0g" is sent as "1%2F%2F0g". */
	escaped = memory_checked(curl_easy_escape(NULL, secret, 0));
	repeated = strstr(text, escaped) != NULL;
	curl_free(escaped);
	return repeated;
}

/* The client and its secret, as HTTP Basic authentication has them. */
static bool
repeats_client(const struct credential *credential, const char *text)
{
	const char *client = credential_text(credential, "client_id");
	const char *secret = credential_text(credential, "client_secret");
	char *pair;
	char *encoded;
	bool repeated;

	if (client == NULL || secret == NULL)
	{
		return false;
	}
	pair = memory_format("%s:%s", client, secret);
	encoded = base64_encode(pair, strlen(pair));
	repeated = strstr(text, encoded) != NULL;
	memory_forget(encoded);
	memory_forget(pair);
	return repeated;
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
		if (secret_is_repeated(text, blank != NULL ? blank + 1 : sent))
		{
			return true;
		}
	}
	return false;
}

bool
secret_is_in(const char *text, const struct credential *credential, const char *sent)
{
	return secret_is_repeated(text, sent) || repeats_header(credential, text) ||
		   repeats_client(credential, text) ||
		   secret_is_repeated(text, credential_text(credential, "refresh_token")) ||
		   secret_is_repeated(text, credential_text(credential, "client_secret")) ||
		   secret_is_repeated(text, credential_text(credential, "private_key"));
}
