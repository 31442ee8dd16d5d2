/* SPDX-License-Identifier: PostgreSQL */
#ifndef PROXY_CONTROL_H
#define PROXY_CONTROL_H

#include "buf.h"
#include "proxy.h"

/*
 * A connection to the control port. Each line is a command, each gets one line in answer: "ok",
 * what it asked for, or "error: …".
 */
struct control
{
	struct link link;
	struct proxy *proxy;
	int socket;
	struct buf input;
};

void control_new(struct proxy *proxy, int socket);

/* Works off what came; frees the connection when it has ended. */
void control_run(struct control *control);
void control_free(struct control *control);

/* One command; appends the answer without its line break. */
void control_command(struct proxy *proxy, const char *line, struct buf *answer);

#endif
