/* SPDX-License-Identifier: PostgreSQL */
#include "http.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "clock.h"
#include "memory.h"

#define CONNECT_TIMEOUT_MS 10000L
/* A peer that acknowledges nothing for so long is gone. */
#define SILENCE_LIMIT_MS 20000

struct http_request
{
	LIST_ENTRY(http_request) link;
	CURL *easy;
	struct curl_slist *headers;
	char *body;
	struct buffer received;
	struct http_response response;
	http_callback callback;
	void (*dropped)(void *context);
	void *context;
};

struct http
{
	CURLM *multi;
	const char *ca_file; /* NULL: the system's own */
	LIST_HEAD(, http_request) running;
};

static void
must(bool ok, const char *what)
{
	if (!ok)
	{
		fprintf(stderr, "inbox-puller: libcurl refused %s\n", what);
		exit(3);
	}
}

#define SET(easy, option, value) \
	must(curl_easy_setopt((easy), (option), (value)) == CURLE_OK, #option)

struct http *
http_new(void)
{
	struct http *http = memory_new(sizeof(*http));

	must(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "to start");
	http->multi = curl_multi_init();
	must(http->multi != NULL, "a multi handle");
	LIST_INIT(&http->running);
	return http;
}

void
http_trust(struct http *http, const char *ca_file)
{
	http->ca_file = ca_file;
}

static void
note_first_byte(struct http_request *request)
{
	if (request->response.first_byte_ms == 0)
	{
		request->response.first_byte_ms = clock_ms();
	}
}

static size_t
receive_body(char *bytes, size_t one, size_t size, void *context)
{
	struct http_request *request = context;

	(void) one; /* libcurl promises 1 */
	note_first_byte(request);
	/* Before its first byte a pull may wait for long; what has begun and stalls has leased messages. */
	if (request->received.size == 0)
	{
		SET(request->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
		SET(request->easy, CURLOPT_LOW_SPEED_TIME, SILENCE_LIMIT_MS / 1000L);
	}
	if (!buffer_append(&request->received, bytes, size))
	{
		request->response.too_large = true;
		return 0;
	}
	return size;
}

static size_t
receive_header(char *bytes, size_t one, size_t size, void *context)
{
	note_first_byte(context);
	(void) bytes;
	return one * size;
}

static void
add_header(struct http_request *request, const char *line)
{
	struct curl_slist *headers = curl_slist_append(request->headers, line);

	must(headers != NULL, "a header");
	request->headers = headers;
}

static void
add_content_type(struct http_request *request, const struct http_spec *spec)
{
	char *line = memory_format("Content-Type: %s", spec->content_type != NULL ? spec->content_type
																			  : "application/json");

	add_header(request, line);
	free(line);
}

/*
 * Over HTTP/2 all requests share a connection, and libcurl keeps one as long as a request is in it,
 * whichever others have timed out: with a pull always waiting, a dead connection would be used for
 * the quarter of an hour that TCP takes to notice.
 */
static int
set_socket(void *context, curl_socket_t socket, curlsocktype purpose)
{
	int limit = SILENCE_LIMIT_MS;

	(void) context;
	(void) purpose;
	/* What has no such option is no TCP socket. */
	setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof(limit));
	return CURL_SOCKOPT_OK;
}

/* A folder of the system's authorities, as Debian has it, would be trusted beside the file. */
static void
set_trust(CURL *easy, const char *ca_file)
{
	SET(easy, CURLOPT_CAINFO, ca_file);
	SET(easy, CURLOPT_CAPATH, NULL);
	SET(easy, CURLOPT_PROXY_CAINFO, ca_file);
	SET(easy, CURLOPT_PROXY_CAPATH, NULL);
}

static void
set_options(struct http_request *request, const struct http_spec *spec)
{
	CURL *easy = request->easy;

	SET(easy, CURLOPT_URL, spec->url);
	SET(easy, CURLOPT_CUSTOMREQUEST, spec->method);
	SET(easy, CURLOPT_PRIVATE, request);
	SET(easy, CURLOPT_ERRORBUFFER, request->response.error);
	SET(easy, CURLOPT_WRITEFUNCTION, receive_body);
	SET(easy, CURLOPT_WRITEDATA, request);
	SET(easy, CURLOPT_HEADERFUNCTION, receive_header);
	SET(easy, CURLOPT_HEADERDATA, request);
	/* What a proxy answers when the connection is made is not the response's first byte. */
	SET(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(easy, CURLOPT_USERAGENT, "inbox-puller/" INBOX_VERSION);
	SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	/* A redirect would carry the token to whoever the answer names. */
	SET(easy, CURLOPT_FOLLOWLOCATION, 0L);
	SET(easy, CURLOPT_TIMEOUT_MS, (long) spec->timeout_ms);
	SET(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	SET(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(easy, CURLOPT_TCP_KEEPIDLE, 30L);
	SET(easy, CURLOPT_TCP_KEEPINTVL, 10L);
	SET(easy, CURLOPT_SOCKOPTFUNCTION, set_socket);
	/* Without these two a resolver that never answers would stop the loop: by a signal, and by
	 * the wait for libcurl's resolver thread when the transfer is given up. */
	SET(easy, CURLOPT_NOSIGNAL, 1L);
	SET(easy, CURLOPT_QUICK_EXIT, 1L);
	/* Over plain text only HTTP/1.1 is sure to be spoken. */
	SET(easy, CURLOPT_HTTP_VERSION,
		strncasecmp(spec->url, "https:", 6) == 0 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
	if (request->body != NULL)
	{
		SET(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) spec->body_size);
		SET(easy, CURLOPT_POSTFIELDS, request->body);
		add_content_type(request, spec);
		/* Waiting for "100 Continue" costs a round trip or a second. */
		add_header(request, "Expect:");
	}
	if (spec->direct)
	{
		SET(easy, CURLOPT_NOPROXY, "*");
	}
	if (spec->authorization != NULL)
	{
		add_header(request, spec->authorization);
	}
	for (const char *const *line = spec->headers; line != NULL && *line != NULL; line++)
	{
		add_header(request, *line);
	}
	SET(easy, CURLOPT_HTTPHEADER, request->headers);
}

void
http_start(struct http *http, const struct http_spec *spec)
{
	struct http_request *request = memory_new(sizeof(*request));

	request->easy = curl_easy_init();
	must(request->easy != NULL, "an easy handle");
	request->callback = spec->callback;
	request->dropped = spec->dropped;
	request->context = spec->context;
	if (spec->body != NULL)
	{
		request->body = memory_copy(spec->body, spec->body_size);
	}
	buffer_init(&request->received, spec->response_limit);
	request->response.sent_ms = clock_ms();
	set_options(request, spec);
	if (http->ca_file != NULL)
	{
		set_trust(request->easy, http->ca_file);
	}
	must(curl_multi_add_handle(http->multi, request->easy) == CURLM_OK, "a transfer");
	LIST_INSERT_HEAD(&http->running, request, link);
}

static void
free_request(struct http *http, struct http_request *request)
{
	LIST_REMOVE(request, link);
	curl_multi_remove_handle(http->multi, request->easy);
	curl_easy_cleanup(request->easy);
	curl_slist_free_all(request->headers);
	buffer_free(&request->received);
	free(request->body);
	free(request);
}

void
http_free(struct http *http)
{
	while (!LIST_EMPTY(&http->running))
	{
		struct http_request *request = LIST_FIRST(&http->running);

		request->dropped(request->context); /* NOLINT: freed ones are off the list */
		free_request(http, request);
	}
	curl_multi_cleanup(http->multi);
	curl_global_cleanup();
	free(http);
}

static void
finish(struct http *http, struct http_request *request, CURLcode result)
{
	struct http_response *response = &request->response;
	curl_off_t retry_after = 0;

	if (result == CURLE_OK)
	{
		curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &response->status);
		curl_easy_getinfo(request->easy, CURLINFO_RETRY_AFTER, &retry_after);
		response->retry_after_ms = (int64_t) retry_after * 1000;
	}
	else if (response->error[0] == '\0')
	{
		snprintf(response->error, sizeof(response->error), "%s", curl_easy_strerror(result));
	}
	response->timed_out = result == CURLE_OPERATION_TIMEDOUT;
	response->body = request->received.bytes != NULL ? request->received.bytes : "";
	response->size = request->received.size;
	request->callback(request->context, response);
	free_request(http, request);
}

bool
http_step(struct http *http)
{
	CURLMsg *done;
	int running;
	int queued;
	bool ended = false;

	must(curl_multi_perform(http->multi, &running) == CURLM_OK, "to move data");
	while ((done = curl_multi_info_read(http->multi, &queued)) != NULL)
	{
		struct http_request *request;

		if (done->msg != CURLMSG_DONE)
		{
			continue;
		}
		curl_easy_getinfo(done->easy_handle, CURLINFO_PRIVATE, (char **) &request);
		finish(http, request, done->data.result);
		ended = true;
	}
	return ended;
}

void
http_wait(struct http *http, struct curl_waitfd *extra, unsigned count, int timeout_ms)
{
	must(curl_multi_poll(http->multi, extra, count, timeout_ms, NULL) == CURLM_OK, "to wait");
}
