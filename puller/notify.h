/* SPDX-License-Identifier: PostgreSQL */
/*
 * Tells the service manager how the puller is, by the datagrams of sd_notify(3) to the socket that
 * NOTIFY_SOCKET names: READY=1 once it is ready as /readyz has it, STATUS= whenever its state
 * changes, WATCHDOG=1 twice in each WATCHDOG_USEC, STOPPING=1 at the end. The protocol is stable and
 * this is all of it, which is why no library is linked for it. Without a manager nothing happens;
 * one that does not listen is not waited for.
 */
#ifndef INBOX_NOTIFY_H
#define INBOX_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

struct puller;

struct notify
{
	int socket;			 /* -1: there is no manager */
	int64_t watchdog_ms; /* between two signs of life; 0: none is asked for */
	int64_t alive_ms;	 /* when the next is due */
	bool ready;			 /* it has been said */
	int state;			 /* enum health_state as last told; -1: none yet */
};

/* Reads the environment. */
void notify_init(struct notify *notify);

/* Once a turn. */
void notify_step(struct notify *notify, const struct puller *puller, int64_t now);

/* When notify_step() has something to do though nothing happens. */
int64_t notify_deadline(const struct notify *notify);

#endif
