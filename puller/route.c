/* SPDX-License-Identifier: PostgreSQL */
#include "route.h"

#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "clock.h"
#include "health.h"
#include "look.h"
#include "memory.h"
#include "page.h"
#include "scrape.h"
#include "status.h"
#include "text.h"

/* Several times what any answer is. */
#define ANSWER_LIMIT ((size_t) 4 * 1024 * 1024)

#define TEXT "text/plain; charset=utf-8"

struct routes
{
	char *page_policy;
};

/* Writes the body; returns the status. */
typedef unsigned (*writer)(struct puller *puller, int64_t now, struct buffer *out);

struct routes *
route_new(void)
{
	struct routes *answers = memory_new(sizeof(*answers));

	answers->page_policy = page_policy();
	return answers;
}

void
route_free(struct routes *answers)
{
	free(answers->page_policy);
	free(answers);
}

/* ---- what there is ------------------------------------------------------------------------------ */

static unsigned
write_page(struct puller *puller, int64_t now, struct buffer *out)
{
	(void) puller;
	(void) now;
	return buffer_append(out, page_bytes(), page_size()) ? MHD_HTTP_OK
														 : MHD_HTTP_INTERNAL_SERVER_ERROR;
}

static unsigned
write_status(struct puller *puller, int64_t now, struct buffer *out)
{
	look_want(puller, now);
	status_write(puller, now, out);
	return MHD_HTTP_OK;
}

static unsigned
write_metrics(struct puller *puller, int64_t now, struct buffer *out)
{
	look_want(puller, now);
	scrape_write(puller, now, out);
	return MHD_HTTP_OK;
}

/* That there is an answer is the answer: a loop that does not turn gives none. */
static unsigned
write_livez(struct puller *puller, int64_t now, struct buffer *out)
{
	(void) puller;
	(void) now;
	text_add(out, "ok\n");
	return MHD_HTTP_OK;
}

static unsigned
write_readyz(struct puller *puller, int64_t now, struct buffer *out)
{
	struct health health;

	health_look(puller, now, &health);
	health_write(&health, true, out);
	return health.ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
}

static unsigned
write_healthz(struct puller *puller, int64_t now, struct buffer *out)
{
	struct health health;

	/* Whether the source is still halted is for the database to say. */
	if (puller->halted)
	{
		look_want(puller, now);
	}
	health_look(puller, now, &health);
	health_write(&health, false, out);
	return health.ok ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
}

static unsigned
write_missing(struct puller *puller, int64_t now, struct buffer *out)
{
	(void) puller;
	(void) now;
	text_add(out, "There are /, /status.json, /metrics, /livez, /readyz and /healthz.\n");
	return MHD_HTTP_NOT_FOUND;
}

static unsigned
write_refusal(struct puller *puller, int64_t now, struct buffer *out)
{
	(void) puller;
	(void) now;
	text_add(out, "Nothing here can be changed: GET or HEAD.\n");
	return MHD_HTTP_METHOD_NOT_ALLOWED;
}

static const struct route
{
	const char *path;
	const char *type;
	writer write;
} routes[] = {
	{"/", "text/html; charset=utf-8", write_page},
	{"/status.json", "application/json", write_status},
	{"/metrics", "text/plain; version=0.0.4; charset=utf-8", write_metrics},
	{"/livez", TEXT, write_livez},
	{"/readyz", TEXT, write_readyz},
	{"/healthz", TEXT, write_healthz},
};

static const struct route missing = {"", TEXT, write_missing};
static const struct route refusal = {"", TEXT, write_refusal};

static const struct route *
find_route(const char *path, const char *method)
{
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
	{
		return &refusal;
	}
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
	{
		if (strcmp(path, routes[i].path) == 0)
		{
			return &routes[i];
		}
	}
	return &missing;
}

/* ---- sending ------------------------------------------------------------------------------------ */

static void
add_headers(struct MHD_Response *response, const struct route *route, const char *policy)
{
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, route->type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	/* A connection that is kept holds a place for nothing. */
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Content-Security-Policy", policy);
	if (route == &refusal)
	{
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	}
}

enum MHD_Result
route_send(struct routes *answers, struct puller *puller, struct MHD_Connection *connection,
		   const char *path, const char *method)
{
	const struct route *route = find_route(path, method);
	struct MHD_Response *response;
	enum MHD_Result result;
	struct buffer body;
	unsigned status;

	buffer_init(&body, ANSWER_LIMIT);
	status = route->write(puller, clock_ms(), &body);
	response = MHD_create_response_from_buffer(body.size, body.bytes, MHD_RESPMEM_MUST_FREE);
	if (response == NULL)
	{
		buffer_free(&body);
		return MHD_NO;
	}
	add_headers(response, route,
				route->write == write_page ? answers->page_policy : "default-src 'none'");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}
