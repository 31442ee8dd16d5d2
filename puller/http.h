/* SPDX-License-Identifier: PostgreSQL */
/*
 * HTTP requests on one libcurl multi handle. Nothing here blocks and nothing here decides:
 * a finished request is handed to its callback, from http_step() and never from inside libcurl.
 */
#ifndef INBOX_HTTP_H
#define INBOX_HTTP_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"

struct http;

struct http_response
{
	long status;	  /* 0 when no whole response came */
	const char *body; /* never NULL; valid during the callback only */
	size_t size;
	int64_t sent_ms;		/* clock_ms() when the request was started */
	int64_t first_byte_ms;	/* clock_ms() at the first byte of the response; 0 when none came */
	int64_t retry_after_ms; /* from Retry-After; 0 when absent */
	bool too_large;			/* the body passed the limit and was cut off */
	bool timed_out;
	char error[CURL_ERROR_SIZE]; /* what went wrong when status is 0 */
};

typedef void (*http_callback)(void *context, const struct http_response *response);

struct http_spec
{
	const char *method; /* "GET", "POST" */
	const char *url;
	const char *authorization;	/* the whole header line, or NULL */
	const char *const *headers; /* more of them, ended by NULL; or NULL */
	bool direct;				/* never through a proxy */
	const char *body;			/* copied; NULL for none */
	const char *content_type;	/* of the body; NULL for JSON */
	size_t body_size;
	size_t response_limit; /* bytes */
	int64_t timeout_ms;	   /* for the whole exchange */
	http_callback callback;
	void (*dropped)(void *context); /* instead, when http_free() ends the request */
	void *context;
};

/* Exits with a message when libcurl cannot be set up. */
struct http *http_new(void);

/*
 * Trusts the authorities in this file, in PEM, and no others: those that the system trusts are left
 * out. For requests from now on; the name must live as long.
 */
void http_trust(struct http *http, const char *ca_file);

void http_free(struct http *http);

/* Starts a request; the callback comes later, once, whatever happens. */
void http_start(struct http *http, const struct http_spec *spec);

/* Moves data and calls the callbacks of what is finished; true when there was one. */
bool http_step(struct http *http);

/* Waits for sockets of libcurl and for "extra", at most timeout_ms. */
void http_wait(struct http *http, struct curl_waitfd *extra, unsigned count, int timeout_ms);

#endif
