/* SPDX-License-Identifier: PostgreSQL */
#include "endpoint.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "config_credential.h"
#include "memory.h"

#define EMULATOR_VARIABLE "PUBSUB_EMULATOR_HOST"

static bool
has_part(CURLU *url, CURLUPart which)
{
	char *part = NULL;
	bool found = curl_url_get(url, which, &part, 0) == CURLUE_OK;

	curl_free(part);
	return found;
}

static bool
part_is(CURLU *url, CURLUPart which, const char *value)
{
	char *part = NULL;
	bool equal = curl_url_get(url, which, &part, 0) == CURLUE_OK && strcmp(part, value) == 0;

	curl_free(part);
	return equal;
}

/* An endpoint is a base to which paths are added; a password in it would end up in logs. */
static bool
is_base_url(CURLU *url)
{
	return (part_is(url, CURLUPART_SCHEME, "https") || part_is(url, CURLUPART_SCHEME, "http")) &&
		   has_part(url, CURLUPART_HOST) && !has_part(url, CURLUPART_USER) &&
		   !has_part(url, CURLUPART_PASSWORD) && !has_part(url, CURLUPART_QUERY) &&
		   !has_part(url, CURLUPART_FRAGMENT);
}

/* The text is shown unless it may hold a password. */
static bool
fail_no_url(const char *place, const char *text, const char *remedy, struct fault *fault)
{
	const char *shown = strchr(text, '@') == NULL ? text : "(not shown)";

	return fault_set(
		fault, memory_format("%s: \"%s\" is not a plain http:// or https:// address", place, shown),
		memory_copy_text(remedy));
}

/* Without --endpoint: the emulator, or the service. Returns where the address comes from. */
static const char *
find_endpoint(struct config *config)
{
	const char *emulator = getenv(EMULATOR_VARIABLE);

	if (config->endpoint != NULL)
	{
		return "--endpoint";
	}
	if (emulator == NULL || emulator[0] == '\0')
	{
		config->endpoint = memory_copy_text(ENDPOINT_DEFAULT);
		return "--endpoint";
	}
	config->emulator = true;
	config->endpoint = strstr(emulator, "://") != NULL ? memory_copy_text(emulator)
													   : memory_format("http://%s", emulator);
	return EMULATOR_VARIABLE;
}

static bool
check_url(const struct config *config, const char *place, CURLU *url, struct fault *fault)
{
	if (curl_url_set(url, CURLUPART_URL, config->endpoint, 0) != CURLUE_OK || !is_base_url(url))
	{
		return fail_no_url(place, config->endpoint,
						   config->emulator
							   ? "Write HOST:PORT, as in localhost:8085."
							   : "Write a scheme and a host, as in "
								 "https://europe-west1-pubsub.googleapis.com; no user, password, "
								 "query or fragment.",
						   fault);
	}
	return true;
}

bool
endpoint_settle(struct config *config, struct fault *fault)
{
	const char *place = find_endpoint(config);
	CURLU *url = curl_url();
	bool settled;

	settled = check_url(config, place, url, fault);
	for (size_t size = strlen(config->endpoint);
		 settled && size > 0 && config->endpoint[size - 1] == '/';)
	{
		config->endpoint[--size] = '\0';
	}
	curl_url_cleanup(url);
	/* --check reports them as a fact among others. */
	return settled && (config->check || config_credential_check(config, fault));
}
