/* SPDX-License-Identifier: PostgreSQL */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "memory.h"
#include "scan.h"

/* Beyond this nothing more is read until some of it is forwarded. */
#define MAX_BUFFERED ((size_t) 1024 * 1024)

/* Bytes received up to a position may be forwarded from a moment on. */
struct delay
{
	struct link link;
	uint64_t position;
	int64_t at;
};

static void forward(struct stream *stream);

static void
stream_timer(struct timer *timer)
{
	struct stream *stream = OWNER(timer, struct stream, timer);

	stream->held = false;
	forward(stream);
}

static void
stream_init(struct stream *stream, struct connection *connection)
{
	stream->connection = connection;
	stream->timer.fire = stream_timer;
	list_init(&stream->delays);
	list_init(&stream->marks);
}

static void
close_socket(int *socket, bool reset)
{
	struct linger linger = {1, 0};

	if (*socket < 0)
		return;
	if (reset)
		setsockopt(*socket, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(*socket);
	*socket = -1;
}

void
connection_new(struct proxy *proxy, int client)
{
	struct connection *connection = memory_get(sizeof(*connection));

	connection->proxy = proxy;
	connection->client = client;
	connection->server = proxy_connect(proxy->target);
	stream_init(&connection->upstream, connection);
	stream_init(&connection->downstream, connection);
	list_append(&proxy->connections, &connection->link);
	proxy->totals.connections++;
	if (connection->server < 0)
	{
		connection_cut(connection);
		return;
	}
	connection_cue(&connection->upstream, CUE_CONNECT, 0);
	for (struct link *link = proxy->triggers.next; link != &proxy->triggers; link = link->next)
	{
		struct trigger *trigger = OWNER(link, struct trigger, link);

		if (trigger->cue == CUE_CLIENT_BYTE)
			connection_cue(&connection->upstream, CUE_CLIENT_BYTE, trigger->at);
		if (trigger->cue == CUE_SERVER_BYTE)
			connection_cue(&connection->downstream, CUE_SERVER_BYTE, trigger->at);
	}
}

static void
add_mark(struct stream *stream, const struct trigger *trigger, uint64_t position)
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

void
connection_cue(struct stream *stream, enum cue cue, uint64_t position)
{
	struct proxy *proxy = stream->connection->proxy;

	for (struct link *link = proxy->triggers.next; link != &proxy->triggers; link = link->next)
	{
		struct trigger *trigger = OWNER(link, struct trigger, link);

		if ((cue == CUE_CLIENT_BYTE || cue == CUE_SERVER_BYTE) && trigger->at != position)
			continue;
		if (trigger_fires(trigger, cue, stream->connection->request_line))
			add_mark(stream, trigger, position + trigger->offset);
	}
}

/* One of the two has gone, so that the other is told. */
static void
lose(struct connection *connection)
{
	close_socket(&connection->client, true);
	close_socket(&connection->server, true);
	connection->dead = true;
}

void
connection_cut(struct connection *connection)
{
	/*
	 * What was forwarded has to take effect, as it would if the network had failed right behind
	 * it. A server that cannot send its answers any more may stop before that, PostgreSQL does; so
	 * its side is only ended, and read until it closes.
	 */
	close_socket(&connection->client, true);
	if (connection->server < 0)
		connection->dead = true;
	else
	{
		shutdown(connection->server, SHUT_WR);
		connection->draining = true;
		connection->stalled = true;
	}
}

/* Reads what the server still sends to a client that was cut. */
static void
drain(struct connection *connection)
{
	char nowhere[4096];
	ssize_t len = recv(connection->server, nowhere, sizeof(nowhere), 0);

	connection->dead = len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR);
}

void
connection_stall(struct connection *connection, bool stalled)
{
	if (connection->draining)
		return;
	connection->stalled = stalled;
	if (stalled)
		return;
	forward(&connection->upstream);
	if (!connection->dead)
		forward(&connection->downstream);
}

static void
do_deed(struct stream *stream, const struct mark *mark)
{
	struct connection *connection = stream->connection;

	connection->proxy->totals.fired++;
	switch (mark->deed)
	{
		case DEED_CUT:
			connection_cut(connection);
			break;
		case DEED_CUT_CLIENT:
			close_socket(&connection->client, true);
			connection->stalled = true;
			break;
		case DEED_CUT_SERVER:
			close_socket(&connection->server, false);
			connection->stalled = true;
			break;
		case DEED_STALL:
			connection->stalled = true;
			break;
		case DEED_DELAY:
			stream->held = true;
			timer_set(&connection->proxy->timers, &stream->timer, timer_now() + mark->delay);
			break;
		case DEEDS:
			break;
	}
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
		do_deed(stream, mark);
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

/* How many bytes may go now. */
static size_t
sendable(const struct stream *stream)
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
			lose(stream->connection);
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

static void
forward(struct stream *stream)
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
		len = sendable(stream);
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

static void
receive(struct stream *stream)
{
	ssize_t len;

	buf_reserve(&stream->bytes, 65536);
	len = recv(*sender_of(stream), stream->bytes.data + stream->bytes.len, 65536, 0);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len < 0)
	{
		lose(stream->connection);
		return;
	}
	stream->bytes.len += (size_t) len;
	stream->ended = len == 0;
	scan(stream);
	delay_received(stream);
}

static short
events_of(const struct connection *connection, const struct stream *in, const struct stream *out)
{
	short events = 0;

	if (connection->stalled)
		return 0;
	if (!in->ended && in->bytes.len < MAX_BUFFERED)
		events |= POLLIN;
	if (sendable(out) > 0)
		events |= POLLOUT;
	return events;
}

void
connection_poll(const struct connection *connection, struct pollfd *descriptors)
{
	const struct stream *up = &connection->upstream;
	const struct stream *down = &connection->downstream;

	descriptors[0].fd = connection->client;
	descriptors[0].events = events_of(connection, up, down);
	descriptors[1].fd = connection->server;
	descriptors[1].events = events_of(connection, down, up);
	if (connection->draining)
		descriptors[1].events = POLLIN;
	for (int i = 0; i < 2; i++)
	{
		/* A closed peer shows whatever is asked for; while stalled nobody looks. */
		if (descriptors[i].events == 0)
			descriptors[i].fd = -1;
		descriptors[i].revents = 0;
	}
}

void
connection_run(struct connection *connection)
{
	struct stream *streams[] = {&connection->upstream, &connection->downstream};

	if (connection->draining)
	{
		drain(connection);
		return;
	}
	for (int i = 0; i < 2 && !connection->dead && !connection->stalled; i++)
	{
		struct stream *stream = streams[i];

		if (!stream->ended && stream->bytes.len < MAX_BUFFERED)
			receive(stream);
		if (!connection->dead)
			forward(stream);
	}
}

static void
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

void
connection_free(struct connection *connection)
{
	close_socket(&connection->client, false);
	close_socket(&connection->server, false);
	stream_free(&connection->upstream);
	stream_free(&connection->downstream);
	link_remove(&connection->link);
	free(connection);
}
