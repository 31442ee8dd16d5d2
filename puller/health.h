/* SPDX-License-Identifier: PostgreSQL */
/*
 * How the puller is, in checks that people and monitors read.
 *
 * /livez answers as soon as the loop turns, and looks at nothing: a restart cures neither database
 * nor Pub/Sub. /readyz tells whether it can work, /healthz whether it does.
 */
#ifndef INBOX_HEALTH_H
#define INBOX_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "puller.h"

/* What the page says first; the worst that is so. */
enum health_state
{
	HEALTH_WORKING,	 /* messages are under way */
	HEALTH_IDLE,	 /* all is well, and there is nothing to do */
	HEALTH_STARTING, /* not connected yet, and nothing has failed */
	HEALTH_STOPPING,
	HEALTH_STUCK,	  /* messages are held, and none gets on */
	HEALTH_HALTED,	  /* message after message failed */
	HEALTH_NO_PUBSUB, /* pulls fail, or the token is missing */
	HEALTH_NO_DATABASE,
	HEALTH_STATES
};

#define HEALTH_CHECKS 5
#define HEALTH_TEXT_SIZE 320

struct health_check
{
	const char *name;
	bool ok;
	bool ready; /* it counts for /readyz, too */
	char text[HEALTH_TEXT_SIZE];
};

struct health
{
	struct health_check check[HEALTH_CHECKS];
	enum health_state state;
	bool ready;
	bool ok;
};

void health_look(const struct puller *puller, int64_t now, struct health *health);

/* Only the state, which costs next to nothing. */
enum health_state health_state(const struct puller *puller, int64_t now);

const char *health_state_name(enum health_state state);

/* One line a check, for /readyz (only_ready) or /healthz. */
void health_write(const struct health *health, bool only_ready, struct buffer *out);

#endif
