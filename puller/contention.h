/* SPDX-License-Identifier: PostgreSQL */
/*
 * Whether batches share the lock of their lock group or run one at a time.
 *
 * Shared as long as all goes well. After a deadlock or a row lock that was not to be had, they
 * run one at a time for a pause, which doubles each time sharing fails again soon after, from 1 s
 * to 60 s, and shrinks again once sharing has lasted as long as the pause had.
 */
#ifndef INBOX_CONTENTION_H
#define INBOX_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

struct contention
{
	bool exclusive;
	int64_t until;	  /* exclusive: then sharing is tried again; else: since when it is */
	int64_t pause_ms; /* the next pause */
	uint64_t met;	  /* how often */
};

void contention_init(struct contention *contention);

/* A batch failed for it. */
void contention_meet(struct contention *contention, int64_t now);

/* True when batches must run one at a time now. */
bool contention_is_exclusive(struct contention *contention, int64_t now);

#endif
