/* SPDX-License-Identifier: PostgreSQL */
#include "exchange.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "grant.h"
#include "memory.h"

#define METADATA_HOST "metadata.google.internal"
#define METADATA_PATH "/computeMetadata/v1/instance/service-accounts/default/"
/* Without this header the metadata server refuses: it tells us from a relayed request. */
#define METADATA_HEADER "Metadata-Flavor: Google"
/* It is on the same machine; while a pod starts it may accept and not answer. */
#define METADATA_TIMEOUT_MS 3000
#define TIMEOUT_MS 10000
#define JWT_GRANT "urn:ietf:params:oauth:grant-type:jwt-bearer"
#define EXCHANGE_GRANT "urn:ietf:params:oauth:grant-type:token-exchange"
#define ACCESS_TOKEN "urn:ietf:params:oauth:token-type:access_token"
#define LIFETIME_S 3600

void
exchange_free(struct exchange *exchange)
{
	free(exchange->url);
	memory_forget(exchange->body);
	for (char **header = exchange->headers; *header != NULL; header++)
	{
		memory_forget(*header);
	}
	*exchange = (struct exchange){0};
}

/* Takes the line over; what is too much is dropped, and the answer will tell. */
static void
add_header(struct exchange *exchange, char *line)
{
	for (int i = 0; i < EXCHANGE_HEADERS_MAX; i++)
	{
		if (exchange->headers[i] == NULL)
		{
			exchange->headers[i] = line;
			return;
		}
	}
	memory_forget(line);
}

static void
init(struct exchange *exchange, const char *method, char *url)
{
	*exchange = (struct exchange){.method = method, .url = url, .timeout_ms = TIMEOUT_MS};
}

/* Names and values, ended by NULL; what has no value is left out. */
static char *
write_form(const char *const *pairs)
{
	char *form = memory_copy_text("");

	for (; pairs[0] != NULL; pairs += 2)
	{
		char *value;
		char *longer;

		if (pairs[1] == NULL)
		{
			continue;
		}
		value = memory_checked(curl_easy_escape(NULL, pairs[1], 0));
		longer = memory_format("%s%s%s=%s", form, form[0] != '\0' ? "&" : "", pairs[0], value);
		memory_forget(form);
		curl_free(value);
		form = longer;
	}
	return form;
}

static void
post_form(struct exchange *exchange, char *url, const char *const *pairs)
{
	init(exchange, "POST", url);
	exchange->content_type = "application/x-www-form-urlencoded";
	exchange->body = write_form(pairs);
}

/* ---- the metadata server -------------------------------------------------------------------- */

static void
ask_metadata(struct exchange *exchange, const char *what)
{
	const char *host = getenv("GCE_METADATA_HOST");

	init(exchange, "GET",
		 memory_format("http://%s" METADATA_PATH "%s",
					   host != NULL && host[0] != '\0' ? host : METADATA_HOST, what));
	add_header(exchange, memory_copy_text(METADATA_HEADER));
	exchange->direct = true;
	exchange->timeout_ms = METADATA_TIMEOUT_MS;
}

void
exchange_ask_machine(struct exchange *exchange, const char *scope)
{
	char *escaped = memory_checked(curl_easy_escape(NULL, scope, 0));
	char *what = memory_format("token?scopes=%s", escaped);

	ask_metadata(exchange, what);
	free(what);
	curl_free(escaped);
}

void
exchange_ask_account(struct exchange *exchange)
{
	ask_metadata(exchange, "email");
}

/* ---- token endpoints ------------------------------------------------------------------------ */

char *
exchange_token_url(const struct credential *credential)
{
	bool federated =
		credential->kind == CREDENTIAL_EXTERNAL || credential->kind == CREDENTIAL_EXTERNAL_USER;
	const char *url = credential_text(credential, federated ? "token_url" : "token_uri");

	if (url != NULL)
	{
		return memory_copy_text(url);
	}
	if (federated)
	{
		return memory_format("https://sts.%s/v1/%s", credential_universe(credential),
							 credential->kind == CREDENTIAL_EXTERNAL ? "token" : "oauthtoken");
	}
	return memory_format("https://oauth2.%s/token", credential_universe(credential));
}

/* HTTP Basic authentication, where the file names a client. */
static void
add_client(struct exchange *exchange, const struct credential *credential)
{
	const char *client = credential_text(credential, "client_id");
	const char *secret = credential_text(credential, "client_secret");
	char *pair;
	char *encoded;

	if (client == NULL)
	{
		return;
	}
	pair = memory_format("%s:%s", client, secret != NULL ? secret : "");
	encoded = base64_encode(pair, strlen(pair));
	add_header(exchange, memory_format("Authorization: Basic %s", encoded));
	memory_forget(encoded);
	memory_forget(pair);
}

void
exchange_refresh(struct exchange *exchange, const struct credential *credential)
{
	bool federated = credential->kind == CREDENTIAL_EXTERNAL_USER;
	const char *const pairs[] = {
		"grant_type",
		"refresh_token",
		"refresh_token",
		credential_text(credential, "refresh_token"),
		"client_id",
		federated ? NULL : credential_text(credential, "client_id"),
		"client_secret",
		federated ? NULL : credential_text(credential, "client_secret"),
		NULL,
	};

	post_form(exchange, exchange_token_url(credential), pairs);
	if (federated)
	{
		add_client(exchange, credential);
	}
}

void
exchange_assertion(struct exchange *exchange, const struct credential *credential,
				   const char *assertion)
{
	const char *const pairs[] = {"grant_type", JWT_GRANT, "assertion", assertion, NULL};

	post_form(exchange, exchange_token_url(credential), pairs);
}

/* ---- external accounts ---------------------------------------------------------------------- */

void
exchange_ask_subject(struct exchange *exchange, const struct credential *credential)
{
	struct json_object *source = credential_subject(credential);
	struct json_object *headers;

	init(exchange, "GET", memory_copy_text(credential_member(source, "url")));
	if (json_object_object_get_ex(source, "headers", &headers))
	{
		json_object_object_foreach(headers, name, value)
		{
			add_header(exchange, memory_format("%s: %s", name, json_object_get_string(value)));
		}
	}
}

/* What Google's service takes beside the standard: the project a workforce user is charged to. */
static char *
write_options(const struct credential *credential)
{
	const char *project = credential_text(credential, "workforce_pool_user_project");
	struct json_object *options;
	char *text;

	if (project == NULL || credential_text(credential, "client_id") != NULL)
	{
		return NULL;
	}
	options = json_object_new_object();
	json_object_object_add(options, "userProject", json_object_new_string(project));
	text = memory_copy_text(json_object_to_json_string_ext(options, JSON_C_TO_STRING_PLAIN));
	json_object_put(options);
	return text;
}

void
exchange_subject(struct exchange *exchange, const struct credential *credential,
				 const char *subject, const char *scope)
{
	char *options = write_options(credential);
	const char *const pairs[] = {
		"grant_type",
		EXCHANGE_GRANT,
		"audience",
		credential_text(credential, "audience"),
		"scope",
		scope,
		"requested_token_type",
		ACCESS_TOKEN,
		"subject_token",
		subject,
		"subject_token_type",
		credential_text(credential, "subject_token_type"),
		"options",
		options,
		NULL,
	};

	post_form(exchange, exchange_token_url(credential), pairs);
	add_client(exchange, credential);
	free(options);
}

/* ---- impersonation -------------------------------------------------------------------------- */

int
exchange_lifetime(const struct credential *credential)
{
	struct json_object *impersonation;
	struct json_object *seconds;
	int lifetime = 0;

	if (json_object_object_get_ex(credential->document, "service_account_impersonation",
								  &impersonation) &&
		json_object_object_get_ex(impersonation, "token_lifetime_seconds", &seconds))
	{
		lifetime = json_object_get_int(seconds);
	}
	return lifetime > 0 ? lifetime : LIFETIME_S;
}

static char *
write_impersonation(const struct credential *credential, const char *scope)
{
	struct json_object *body = json_object_new_object();
	struct json_object *scopes = json_object_new_array();
	struct json_object *delegates = NULL;
	char lifetime[32];
	char *text;

	if (credential->kind == CREDENTIAL_IMPERSONATED)
	{
		json_object_object_get_ex(credential->document, "delegates", &delegates);
		json_object_object_add(body, "delegates",
							   delegates != NULL ? json_object_get(delegates)
												 : json_object_new_array());
	}
	json_object_array_add(scopes, json_object_new_string(scope));
	json_object_object_add(body, "scope", scopes);
	snprintf(lifetime, sizeof(lifetime), "%ds", exchange_lifetime(credential));
	json_object_object_add(body, "lifetime", json_object_new_string(lifetime));
	text = memory_copy_text(json_object_to_json_string_ext(
		body, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(body);
	return text;
}

/* It is a request of the source, and a user has to say which project it counts for. */
static void
add_quota_project(struct exchange *exchange, const struct credential *source)
{
	const char *project = source != NULL ? credential_text(source, "quota_project_id") : NULL;

	if (grant_is_token(project))
	{
		add_header(exchange, memory_format("x-goog-user-project: %s", project));
	}
}

void
exchange_impersonate(struct exchange *exchange, const struct credential *credential,
					 const char *bearer, const char *scope)
{
	init(exchange, "POST",
		 memory_copy_text(credential_text(credential, "service_account_impersonation_url")));
	exchange->content_type = "application/json";
	exchange->body = write_impersonation(credential, scope);
	add_header(exchange, memory_format("Authorization: Bearer %s", bearer));
	add_quota_project(exchange, credential->source);
}
