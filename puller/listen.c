/* SPDX-License-Identifier: PostgreSQL */
#include "listen.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "listen_address.h"
#include "log.h"
#include "memory.h"
#include "route.h"

/* Browsers open six, a scraper one. Beyond CLIENTS_MAX the oldest is closed for the newest. */
#define CLIENTS_MAX 24
/* Never reached: the library would cease to wait for new ones, with nothing to wake it again. */
#define CONNECTION_LIMIT (CLIENTS_MAX + 100)
/* So that a storm of connections delays who comes in it by little. */
#define BACKLOG 256
/* Request line, headers and the headers of the answer. */
#define CONNECTION_MEMORY ((size_t) 8192)
/* From its first byte to the last of the answer. */
#define CLIENT_LIMIT_MS 10000
/* After serving for a while it rests for that many times as long. */
#define REST_TIMES 9

struct client
{
	TAILQ_ENTRY(client) link;
	int socket;
	int64_t since_ms;
	bool ended; /* shut down, and not closed yet */
};

struct listen
{
	struct MHD_Daemon *daemon;
	int epoll;
	int64_t rest_until_us;
	TAILQ_HEAD(, client) clients; /* the oldest first; without those that have ended */
	size_t client_count;
	struct puller *puller; /* during listen_step() */
	struct routes *answers;
};

/* ---- clients ----------------------------------------------------------------------------------- */

/* The library sees the end of it and closes it. */
static void
end_client(struct listen *listen, struct client *client)
{
	TAILQ_REMOVE(&listen->clients, client, link);
	listen->client_count--;
	client->ended = true;
	shutdown(client->socket, SHUT_RDWR);
}

static void
begin_client(struct listen *listen, struct MHD_Connection *connection, void **state)
{
	struct client *client = memory_new(sizeof(*client));

	client->socket =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	client->since_ms = clock_ms();
	*state = client;
	if (listen->client_count == CLIENTS_MAX)
	{
		end_client(listen, TAILQ_FIRST(&listen->clients));
	}
	TAILQ_INSERT_TAIL(&listen->clients, client, link);
	listen->client_count++;
}

static void
see_connection(void *context, struct MHD_Connection *connection, void **state,
			   enum MHD_ConnectionNotificationCode what)
{
	struct listen *listen = context;
	struct client *client = *state;

	if (what == MHD_CONNECTION_NOTIFY_STARTED)
	{
		begin_client(listen, connection, state);
		return;
	}
	if (client != NULL && !client->ended)
	{
		TAILQ_REMOVE(&listen->clients, client, link);
		listen->client_count--;
	}
	free(client);
	*state = NULL;
}

static void
end_slow_clients(struct listen *listen, int64_t now)
{
	struct client *client;

	while ((client = TAILQ_FIRST(&listen->clients)) != NULL &&
		   now - client->since_ms >= CLIENT_LIMIT_MS)
	{
		end_client(listen, client);
	}
}

/* ---- requests ---------------------------------------------------------------------------------- */

static enum MHD_Result
take_request(void *context, struct MHD_Connection *connection, const char *path, const char *method,
			 const char *version, const char *body, size_t *body_size, void **state)
{
	struct listen *listen = context;

	(void) version;
	(void) body;
	(void) body_size;
	(void) state;
	return route_send(listen->answers, listen->puller, connection, path, method);
}

/* ---- the socket -------------------------------------------------------------------------------- */

static int
complain(const char *value, const char *what, int error)
{
	fprintf(stderr,
			"inbox-puller: --listen %s: %s: %s\n"
			"inbox-puller: Choose another address or port, or end what has it.\n",
			value, what, strerror(error));
	return -1;
}

static int
open_socket(const char *value, struct listen_address *address)
{
	int yes = 1;
	int file = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (file < 0)
	{
		return complain(value, "could not make a socket", errno);
	}
	setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(file, (struct sockaddr *) &address->socket, address->size) != 0 ||
		listen(file, BACKLOG) != 0)
	{
		int error = errno;

		close(file);
		return complain(value, "could not listen there", error);
	}
	/* The port, where 0 asked for one that is free. */
	getsockname(file, (struct sockaddr *) &address->socket, &address->size);
	return file;
}

static bool
start(struct listen *listen, int file)
{
	listen->daemon = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, take_request, listen, MHD_OPTION_LISTEN_SOCKET, file,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned) CONNECTION_LIMIT,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION,
		see_connection, listen, MHD_OPTION_END);
	if (listen->daemon == NULL)
	{
		fprintf(stderr, "inbox-puller: libmicrohttpd could not be started\n");
		return false;
	}
	listen->epoll = MHD_get_daemon_info(listen->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	return true;
}

struct listen *
listen_new(const char *value)
{
	struct listen_address address;
	char text[LISTEN_ADDRESS_SIZE];
	struct listen *listen;
	int file;

	/* config_check() has passed it. */
	if (listen_address_parse(value, &address) != NULL || (file = open_socket(value, &address)) < 0)
	{
		return NULL;
	}
	listen = memory_new(sizeof(*listen));
	TAILQ_INIT(&listen->clients);
	listen->answers = route_new();
	if (!start(listen, file))
	{
		close(file);
		route_free(listen->answers);
		free(listen);
		return NULL;
	}
	log_event(LOG_INFO, "listening", "address", LOG_TEXT, listen_address_text(&address, text),
			  NULL);
	return listen;
}

void
listen_free(struct listen *listen)
{
	if (listen == NULL)
	{
		return;
	}
	MHD_stop_daemon(listen->daemon);
	route_free(listen->answers);
	free(listen);
}

/* ---- the loop ---------------------------------------------------------------------------------- */

static bool
rests(const struct listen *listen)
{
	return clock_us() < listen->rest_until_us;
}

int
listen_descriptor(const struct listen *listen)
{
	return rests(listen) ? -1 : listen->epoll;
}

int64_t
listen_deadline(const struct listen *listen, int64_t now)
{
	const struct client *oldest = TAILQ_FIRST(&listen->clients);
	int64_t deadline = oldest != NULL ? oldest->since_ms + CLIENT_LIMIT_MS : CLOCK_NEVER;
	MHD_UNSIGNED_LONG_LONG timeout;

	if (rests(listen))
	{
		return listen->rest_until_us / 1000 + 1;
	}
	if (MHD_get_timeout(listen->daemon, &timeout) == MHD_YES && now + (int64_t) timeout < deadline)
	{
		deadline = now + (int64_t) timeout;
	}
	return deadline;
}

void
listen_step(struct listen *listen, struct puller *puller, int64_t now)
{
	int64_t begin = clock_us();
	int64_t end;

	if (begin < listen->rest_until_us)
	{
		return;
	}
	end_slow_clients(listen, now);
	listen->puller = puller;
	MHD_run(listen->daemon);
	listen->puller = NULL;
	end = clock_us();
	/* A turn in which nobody asks anything takes a few microseconds, and is not counted. */
	if (end - begin > 100)
	{
		listen->rest_until_us = end + REST_TIMES * (end - begin);
	}
}
