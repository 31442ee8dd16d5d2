/* SPDX-License-Identifier: PostgreSQL */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "memory.h"
#include "proxy.h"

#define BACKLOG 128

/* "HOST:PORT" or "[HOST]:PORT", HOST an IP address; NULL if it is not. */
static struct addrinfo *
parse_address(const char *address, bool passive)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	const char *colon = strrchr(address, ':');
	bool brackets = *address == '[';
	struct addrinfo *found = NULL;
	char *host;

	if (colon == NULL || colon - address < 2 * brackets)
		return NULL;
	hints.ai_flags |= AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
	host =
		memory_copy_bytes(address + brackets, (size_t) (colon - address) - 2 * (size_t) brackets);
	if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
		found = NULL;
	free(host);
	return found;
}

static int
fail(int descriptor, const char *what, const char *address)
{
	fprintf(stderr, "cannot %s %s: %s\n", what, address, strerror(errno));
	if (descriptor >= 0)
		close(descriptor);
	return -1;
}

int
proxy_listen(const char *address, int *port)
{
	struct addrinfo *found = parse_address(address, true);
	struct sockaddr_in6 bound;
	socklen_t len = sizeof(bound);
	int descriptor;
	int on = 1;

	if (found == NULL)
	{
		fprintf(stderr, "cannot listen on %s: it is not ADDRESS:PORT\n", address);
		return -1;
	}
	descriptor = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(descriptor, found->ai_addr, found->ai_addrlen) < 0 ||
		listen(descriptor, BACKLOG) < 0 ||
		getsockname(descriptor, (struct sockaddr *) &bound, &len) < 0)
		descriptor = fail(descriptor, "listen on", address);
	else
		/* The port is at the same place for both families. */
		*port = ntohs(bound.sin6_port);
	freeaddrinfo(found);
	return descriptor;
}

static int
connect_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (connect(descriptor, (struct sockaddr *) &address, sizeof(address)) < 0)
		return fail(descriptor, "connect to", path);
	return descriptor;
}

static int
connect_tcp(const char *target)
{
	struct addrinfo *found = parse_address(target, false);
	int descriptor;
	int on = 1;

	if (found == NULL)
	{
		fprintf(stderr, "cannot connect to %s: it is not ADDRESS:PORT\n", target);
		return -1;
	}
	descriptor = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(descriptor, found->ai_addr, found->ai_addrlen) < 0)
		descriptor = fail(descriptor, "connect to", target);
	else
		setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	freeaddrinfo(found);
	return descriptor;
}

int
proxy_connect(const char *target)
{
	int descriptor = *target == '/' ? connect_unix(target) : connect_tcp(target);

	if (descriptor >= 0)
		fcntl(descriptor, F_SETFL, O_NONBLOCK);
	return descriptor;
}

bool
proxy_refuse(struct proxy *proxy, bool refuse)
{
	int port;

	if (refuse && proxy->listener >= 0)
	{
		close(proxy->listener);
		proxy->listener = -1;
	}
	if (!refuse && proxy->listener < 0)
		proxy->listener = proxy_listen(proxy->address, &port);
	return refuse == (proxy->listener < 0);
}
