/* SPDX-License-Identifier: PostgreSQL */
#include "url.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#include "memory.h"

static bool
is_loopback(const char *host)
{
	struct in_addr address;

	return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
		   (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

/* Both are to be freed by curl_free(); NULL where the address has none. */
static void
split(const char *text, char **scheme, char **host)
{
	CURLU *url = curl_url();

	*scheme = NULL;
	*host = NULL;
	if (curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK)
	{
		curl_url_get(url, CURLUPART_SCHEME, scheme, 0);
		curl_url_get(url, CURLUPART_HOST, host, 0);
	}
	curl_url_cleanup(url);
}

bool
url_keeps_secrets(const char *url)
{
	char *scheme;
	char *host;
	bool keeps;

	split(url, &scheme, &host);
	keeps = scheme != NULL && host != NULL &&
			(strcmp(scheme, "https") == 0 || (strcmp(scheme, "http") == 0 && is_loopback(host)));
	curl_free(scheme);
	curl_free(host);
	return keeps;
}

char *
url_origin(const char *url)
{
	char *scheme;
	char *host;
	char *origin;

	split(url, &scheme, &host);
	origin = memory_format("%s://%s", scheme != NULL ? scheme : "?", host != NULL ? host : "?");
	curl_free(scheme);
	curl_free(host);
	return origin;
}
