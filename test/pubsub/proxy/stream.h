/* SPDX-License-Identifier: PostgreSQL */
#ifndef PROXY_STREAM_H
#define PROXY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "list.h"
#include "timer.h"
#include "trigger.h"

struct connection;

/* A deed due at one byte of a direction. */
struct mark
{
	struct link link;
	uint64_t position;
	enum deed deed;
	int64_t delay;
};

/* The bytes of one direction, on their way. Positions count from the start of the connection. */
struct stream
{
	struct connection *connection;
	struct buf bytes; /* from position "forwarded" on */
	uint64_t forwarded;
	uint64_t scanned;	/* up to here the protocol is understood, so it may go on */
	uint64_t released;	/* up to here the latency is over */
	struct link delays; /* when more is released */
	struct link marks;	/* by position */
	bool ended;			/* the sender has closed */
	bool closed;		/* and the receiver knows */
	bool held;			/* by a delay */
	struct timer timer; /* the end of the delay, or the next release */
};

void stream_init(struct stream *stream, struct connection *connection);

/* Marks a byte that has not been forwarded yet; what the trigger says is done before it goes. */
void stream_mark(struct stream *stream, const struct trigger *trigger, uint64_t position);

/* Whether there is room for more, and how many bytes may go now. */
bool stream_wants(const struct stream *stream);
size_t stream_sendable(const struct stream *stream);

/* Reads once; forwards what may go, and does what is marked. */
void stream_receive(struct stream *stream);
void stream_forward(struct stream *stream);
void stream_free(struct stream *stream);

#endif
