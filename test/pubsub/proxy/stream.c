/* SPDX-License-Identifier: PostgreSQL */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "connection.h"
#include "memory.h"
#include "scan.h"
#include "stream.h"

/* Beyond this nothing more is read until some of it is forwarded. */
#define MAX_BUFFERED ((size_t) 1024 * 1024)

/* Bytes received up to a position may be forwarded from a moment on. */
struct delay
{
	struct link link;
	uint64_t position;
	int64_t at;
};

static int *
receiver_of(struct stream *stream)
{
	struct connection *connection = stream->connection;

	return stream == &connection->upstream ? &connection->server : &connection->client;
}

static int *
sender_of(struct stream *stream)
{
	struct connection *connection = stream->connection;

	return stream == &connection->upstream ? &connection->client : &connection->server;
}

static void
stream_timer(struct timer *timer)
{
	struct stream *stream = OWNER(timer, struct stream, timer);

	stream->held = false;
	stream_forward(stream);
}

void
stream_init(struct stream *stream, struct connection *connection)
{
	stream->connection = connection;
	stream->timer.fire = stream_timer;
	list_init(&stream->delays);
	list_init(&stream->marks);
}

void
stream_mark(struct stream *stream, const struct trigger *trigger, uint64_t position)
{
	struct mark *mark = memory_get(sizeof(*mark));
	struct link *before = stream->marks.next;

	mark->position = position;
	mark->deed = trigger->deed;
	mark->delay = trigger->delay;
	while (before != &stream->marks && OWNER(before, struct mark, link)->position <= position)
		before = before->next;
	/* Appending to a list that starts there is inserting before it. */
	list_append(before, &mark->link);
}

/* Does what is due at the byte that comes next. */
static void
do_marks(struct stream *stream)
{
	while (!list_empty(&stream->marks) && !stream->held && !stream->connection->stalled &&
		   !stream->connection->dead)
	{
		struct mark *mark = OWNER(stream->marks.next, struct mark, link);

		if (mark->position > stream->forwarded)
			break;
		link_remove(&mark->link);
		connection_do(stream, mark);
		free(mark);
	}
}

/* Releases what has waited for the latency; sets the timer for the rest. */
static void
release(struct stream *stream)
{
	int64_t now = timer_now();

	while (!list_empty(&stream->delays))
	{
		struct delay *delay = OWNER(stream->delays.next, struct delay, link);

		if (delay->at > now)
		{
			timer_set(&stream->connection->proxy->timers, &stream->timer, delay->at);
			break;
		}
		stream->released = delay->position;
		link_remove(&delay->link);
		free(delay);
	}
}

bool
stream_wants(const struct stream *stream)
{
	return !stream->ended && stream->bytes.len < MAX_BUFFERED;
}

size_t
stream_sendable(const struct stream *stream)
{
	uint64_t end = stream->forwarded + stream->bytes.len;

	if (stream->held || stream->connection->stalled)
		return 0;
	if (!stream->ended && stream->scanned < end)
		end = stream->scanned;
	if (stream->released < end)
		end = stream->released;
	if (!list_empty(&stream->marks))
	{
		uint64_t mark = OWNER(stream->marks.next, struct mark, link)->position;

		if (mark < end)
			end = mark;
	}
	return end > stream->forwarded ? (size_t) (end - stream->forwarded) : 0;
}

static bool
send_some(struct stream *stream, size_t len)
{
	struct totals *totals = &stream->connection->proxy->totals;
	ssize_t sent = send(*receiver_of(stream), stream->bytes.data, len, MSG_NOSIGNAL);

	if (sent < 0)
	{
		if (errno != EAGAIN && errno != EINTR)
			connection_lose(stream->connection);
		return false;
	}
	stream->bytes.len -= (size_t) sent;
	memmove(stream->bytes.data, stream->bytes.data + sent, stream->bytes.len);
	stream->forwarded += (uint64_t) sent;
	if (stream == &stream->connection->upstream)
		totals->client_bytes += (uint64_t) sent;
	else
		totals->server_bytes += (uint64_t) sent;
	return true;
}

void
stream_forward(struct stream *stream)
{
	struct connection *connection = stream->connection;
	size_t len;

	do
	{
		if (!stream->held)
			release(stream);
		do_marks(stream);
		if (connection->dead)
			return;
		len = stream_sendable(stream);
	} while (len > 0 && send_some(stream, len));
	if (stream->ended && !stream->closed && stream->bytes.len == 0 && !connection->stalled &&
		!connection->dead)
	{
		stream->closed = true;
		shutdown(*receiver_of(stream), SHUT_WR);
		connection->dead = connection->upstream.closed && connection->downstream.closed;
	}
}

static void
scan(struct stream *stream)
{
	struct proxy *proxy = stream->connection->proxy;
	bool from_client = stream == &stream->connection->upstream;

	for (;;)
	{
		uint64_t end = stream->forwarded + stream->bytes.len;
		size_t offset = (size_t) (stream->scanned - stream->forwarded);
		const char *bytes = stream->bytes.data + offset;
		size_t len = (size_t) (end - stream->scanned);
		size_t done;

		if (stream->scanned >= end)
			return;
		if (proxy->protocol == PROTOCOL_TCP)
			done = len;
		else if (proxy->protocol == PROTOCOL_POSTGRES)
			done = from_client ? postgres_scan_client(stream, bytes, len)
							   : postgres_scan_server(stream, bytes, len);
		else
			done = from_client ? http_scan_client(stream, bytes, len)
							   : http_scan_server(stream, bytes, len);
		if (done == 0)
			return;
		stream->scanned += done;
	}
}

static void
delay_received(struct stream *stream)
{
	struct proxy *proxy = stream->connection->proxy;
	struct delay *delay = memory_get(sizeof(*delay));

	delay->position = stream->forwarded + stream->bytes.len;
	delay->at = timer_now() + proxy->latency;
	list_append(&stream->delays, &delay->link);
}

void
stream_receive(struct stream *stream)
{
	ssize_t len;

	buf_reserve(&stream->bytes, 65536);
	len = recv(*sender_of(stream), stream->bytes.data + stream->bytes.len, 65536, 0);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len < 0)
	{
		connection_lose(stream->connection);
		return;
	}
	stream->bytes.len += (size_t) len;
	stream->ended = len == 0;
	scan(stream);
	delay_received(stream);
}

void
stream_free(struct stream *stream)
{
	timer_cancel(&stream->connection->proxy->timers, &stream->timer);
	while (!list_empty(&stream->delays))
	{
		struct delay *delay = OWNER(stream->delays.next, struct delay, link);

		link_remove(&delay->link);
		free(delay);
	}
	while (!list_empty(&stream->marks))
	{
		struct mark *mark = OWNER(stream->marks.next, struct mark, link);

		link_remove(&mark->link);
		free(mark);
	}
	buf_free(&stream->bytes);
}
