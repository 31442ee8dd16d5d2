/* SPDX-License-Identifier: PostgreSQL */
/*
 * The HTTP server of --listen: the page, metrics and health, for reading only. It runs in the
 * loop's turns, and whoever asks cannot slow that down: few connections, small requests, a few
 * seconds for each, and a tenth of the loop's time for all of them.
 */
#ifndef INBOX_LISTEN_H
#define INBOX_LISTEN_H

#include <stdint.h>

struct listen;
struct puller;

/* Binds the value of --listen. NULL when that cannot be; the message has been written. */
struct listen *listen_new(const char *value);
void listen_free(struct listen *listen);

/* What to wait for: a descriptor that is readable, or -1 while it rests. */
int listen_descriptor(const struct listen *listen);

/* When listen_step() has something to do next by itself. */
int64_t listen_deadline(const struct listen *listen, int64_t now);

/* Answers who has asked; reads the puller and changes nothing but what somebody wants to see. */
void listen_step(struct listen *listen, struct puller *puller, int64_t now);

#endif
