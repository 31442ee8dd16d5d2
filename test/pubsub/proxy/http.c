/* SPDX-License-Identifier: PostgreSQL */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "connection.h"
#include "scan.h"

#define MAX_HEADER 65536

/* The length of the header with its blank line; 0 if it is not all there. */
static size_t
header_len(const char *bytes, size_t len)
{
	const char *end = memmem(bytes, len, "\r\n\r\n", 4);

	return end == NULL ? 0 : (size_t) (end - bytes) + 4;
}

/* Whether the header has the field; its number, if it is one, goes to *number. */
static bool
get_field(const char *header, size_t len, const char *name, size_t *number)
{
	size_t name_len = strlen(name);
	const char *line = memchr(header, '\n', len);

	while (line != NULL && (size_t) (++line - header) + name_len < len)
	{
		if (strncasecmp(line, name, name_len) == 0)
		{
			*number = strtoull(line + name_len, NULL, 10);
			return true;
		}
		line = memchr(line, '\n', len - (size_t) (line - header));
	}
	return false;
}

static void
keep_request_line(struct connection *connection, const char *bytes, size_t len)
{
	const char *end = memchr(bytes, '\r', len);
	size_t line = end == NULL ? len : (size_t) (end - bytes);

	snprintf(connection->request_line, sizeof(connection->request_line), "%.*s", (int) line, bytes);
}

/* One message from its first byte on; both directions differ only in what they are called. */
static size_t
scan(struct stream *stream, struct http_state *state, const char *bytes, size_t len, enum cue begin,
	 enum cue end)
{
	size_t header = header_len(bytes, len);
	size_t body = 0;

	if (header == 0)
	{
		state->opaque = len > MAX_HEADER;
		return state->opaque ? len : 0;
	}
	if (begin == CUE_REQUEST)
	{
		keep_request_line(stream->connection, bytes, header);
		stream->connection->proxy->totals.round_trips++;
	}
	else if (len > 9 && bytes[9] == '1')
		return header; /* an interim response, such as 100 Continue */
	connection_cue(stream, begin, stream->scanned);
	if (!get_field(bytes, header, "Content-Length:", &body) &&
		get_field(bytes, header, "Transfer-Encoding:", &body))
		state->opaque = true;
	else
		connection_cue(stream, end, stream->scanned + header + body);
	return header + body;
}

size_t
http_scan_client(struct stream *stream, const char *bytes, size_t len)
{
	struct http_state *state = &stream->connection->request;

	return state->opaque ? len : scan(stream, state, bytes, len, CUE_REQUEST, CUE_REQUEST_SENT);
}

size_t
http_scan_server(struct stream *stream, const char *bytes, size_t len)
{
	struct http_state *state = &stream->connection->response;

	return state->opaque ? len : scan(stream, state, bytes, len, CUE_RESPONSE, CUE_RESPONSE_SENT);
}
