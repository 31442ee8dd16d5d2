/* SPDX-License-Identifier: PostgreSQL */
#ifndef PROXY_CONNECTION_H
#define PROXY_CONNECTION_H

#include <poll.h>

#include "proxy.h"
#include "stream.h"

/* What the PostgreSQL scanner remembers. */
struct postgres_state
{
	bool started;			   /* the client's startup packet has passed */
	bool opaque;			   /* encrypted, or a cancel request: not understood any more */
	char commit_statement[64]; /* a statement prepared from the text COMMIT; "" is the unnamed */
	bool has_commit_statement;
	bool commit_bound;	 /* the portal bound last is a COMMIT */
	bool commit_running; /* an Execute of it is sent, its Sync is not */
	bool commit_due;	 /* its answer is due */
	uint64_t commit_sync;
	bool sending; /* the client has begun to send what no answer was due for */
	uint64_t syncs_sent;
	uint64_t syncs_answered;
};

/* What the HTTP scanner remembers of one direction. */
struct http_state
{
	bool opaque; /* a body without a length: not understood any more */
};

/* One client, with a connection of its own to the server. */
struct connection
{
	struct proxy *proxy;
	struct link link;
	int client; /* -1: closed */
	int server;
	struct stream upstream;	  /* from the client to the server */
	struct stream downstream; /* and back */
	bool stalled;
	bool draining; /* cut: what the server still sends goes nowhere */
	bool dead;	   /* to be freed at the end of the turn */
	struct postgres_state postgres;
	struct http_state request;
	struct http_state response;
	char request_line[512];
};

/* Takes over the client's socket. */
void connection_new(struct proxy *proxy, int client);

/* A scanner came to a point of the connection; the position is in that stream. */
void connection_cue(struct stream *stream, enum cue cue, uint64_t position);

/* What a mark of the stream stands for is done. */
void connection_do(struct stream *stream, const struct mark *mark);

/* What to wait for; sets two descriptors. */
void connection_poll(const struct connection *connection, struct pollfd *descriptors);

/* Reads and forwards what can be. */
void connection_run(struct connection *connection);

/* Resets the client; the server gets what was forwarded, and then the end. */
void connection_cut(struct connection *connection);

/* One of the two has gone; the other is told. */
void connection_lose(struct connection *connection);
void connection_stall(struct connection *connection, bool stalled);
void connection_free(struct connection *connection);

#endif
