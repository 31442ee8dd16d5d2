/* SPDX-License-Identifier: PostgreSQL */
#include "endpoint.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

#define DEFAULT_ENDPOINT "https://pubsub.googleapis.com"
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

static bool
is_loopback(CURLU *url)
{
	char *host = NULL;
	struct in_addr address;
	bool loopback;

	if (curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
	{
		return false;
	}
	loopback = strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
			   (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
	curl_free(host);
	return loopback;
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
		config->endpoint = memory_copy_text(DEFAULT_ENDPOINT);
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

/* ---- credentials -------------------------------------------------------------------------- */

static bool
is_blank(const char *bytes, ssize_t size)
{
	for (ssize_t i = 0; i < size; i++)
	{
		if (!isspace((unsigned char) bytes[i]))
		{
			return false;
		}
	}
	return true;
}

/* NULL when the file holds something to send, else what is wrong with it. */
static const char *
look_into_token(int file)
{
	char start[256];
	struct stat status;
	const char *wrong = NULL;
	ssize_t size;

	if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
	{
		return "it is not a regular file";
	}
	size = read(file, start, sizeof(start));
	if (size < 0)
	{
		return strerror(errno);
	}
	wrong = is_blank(start, size) ? "it is empty" : NULL;
	explicit_bzero(start, sizeof(start));
	return wrong;
}

/* The same; O_NONBLOCK, as opening a FIFO would wait for its writer. */
static const char *
look_at_token(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *wrong;

	if (file < 0)
	{
		return strerror(errno);
	}
	wrong = look_into_token(file);
	close(file);
	return wrong;
}

static bool
check_token(const struct config *config, CURLU *url, struct fault *fault)
{
	const char *wrong = look_at_token(config->token_file);

	if (wrong != NULL)
	{
		return fault_set(
			fault,
			memory_format("--token-file \"%s\" cannot be used: %s", config->token_file, wrong),
			memory_copy_text("Put an access token into it that the puller may read."));
	}
	if (part_is(url, CURLUPART_SCHEME, "http") && !is_loopback(url))
	{
		return fault_set(
			fault, memory_format("the token would be sent unencrypted to %s", config->endpoint),
			memory_copy_text("Use an https:// endpoint; http:// is for this machine only."));
	}
	return true;
}

static bool
check_credentials(const struct config *config, CURLU *url, struct fault *fault)
{
	if (config->emulator && config->token_file != NULL)
	{
		return fault_set(fault,
						 memory_copy_text("--token-file and " EMULATOR_VARIABLE " are both given, "
										  "but an emulator takes no credentials"),
						 memory_copy_text("Unset " EMULATOR_VARIABLE " to consume the real "
										  "service, or leave --token-file out."));
	}
	if (config->emulator)
	{
		return true;
	}
	if (config->token_file == NULL)
	{
		return fault_set(fault, memory_format("there are no credentials for %s", config->endpoint),
						 memory_copy_text("Name a file with an access token by --token-file, or "
										  "an emulator by " EMULATOR_VARIABLE " without "
										  "--endpoint; these are what this version supports."));
	}
	return check_token(config, url, fault);
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
	settled = settled && check_credentials(config, url, fault);
	curl_url_cleanup(url);
	return settled;
}
