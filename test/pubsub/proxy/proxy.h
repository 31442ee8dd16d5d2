/* SPDX-License-Identifier: PostgreSQL */
#ifndef PROXY_PROXY_H
#define PROXY_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"
#include "timer.h"
#include "trigger.h"

struct connection;

enum protocol
{
	PROTOCOL_TCP,
	PROTOCOL_POSTGRES,
	PROTOCOL_HTTP
};

struct totals
{
	uint64_t connections;
	uint64_t client_bytes; /* forwarded */
	uint64_t server_bytes;
	/* PostgreSQL: how often a client sent something while no answer was due; HTTP: requests. */
	uint64_t round_trips;
	uint64_t commits; /* COMMITs seen */
	uint64_t fired;
};

/* All there is to one process; one thread works it off. */
struct proxy
{
	enum protocol protocol;
	char *target;  /* HOST:PORT, or the path of a Unix socket */
	char *address; /* where to listen, with the port it got */
	int listener;  /* -1: refusing */
	int control_listener;
	int64_t latency; /* added in each direction, nanoseconds */
	struct timers timers;
	struct link connections;
	struct link controls;
	struct link triggers;
	size_t triggers_made;
	struct totals totals;
};

/* Sockets: -1, with a message on standard error, on failure. */
int proxy_listen(const char *address, int *port);
int proxy_connect(const char *target);

/* Stops or starts to listen; who connects meanwhile is refused. */
bool proxy_refuse(struct proxy *proxy, bool refuse);

#endif
