/* SPDX-License-Identifier: PostgreSQL */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "memory.h"

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
			stream_mark(stream, trigger, position + trigger->offset);
	}
}

void
connection_lose(struct connection *connection)
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
	stream_forward(&connection->upstream);
	if (!connection->dead)
		stream_forward(&connection->downstream);
}

void
connection_do(struct stream *stream, const struct mark *mark)
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

static short
events_of(const struct connection *connection, const struct stream *in, const struct stream *out)
{
	short events = 0;

	if (connection->stalled)
		return 0;
	if (stream_wants(in))
		events |= POLLIN;
	if (stream_sendable(out) > 0)
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
		if (stream_wants(streams[i]))
			stream_receive(streams[i]);
		if (!connection->dead)
			stream_forward(streams[i]);
	}
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
