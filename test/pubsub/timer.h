/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_TIMER_H
#define PUBSUB_TIMER_H

#include <stddef.h>
#include <stdint.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

/*
 * One-shot timers in a binary heap. Times are nanoseconds of CLOCK_MONOTONIC, so that a clock that
 * is set cannot end a lease. A timer lives inside what it is for; all zero is a timer not set.
 */
struct timer
{
	int64_t at;
	void (*fire)(struct timer *timer);
	size_t slot; /* its place in the heap counted from 1; 0 = not set */
};

struct timers
{
	struct timer **heap;
	size_t count;
	size_t room;
};

int64_t timer_now(void);

/* Sets the timer, or moves it if it is set. */
void timer_set(struct timers *timers, struct timer *timer, int64_t at);
void timer_cancel(struct timers *timers, struct timer *timer);

/* When the next one is due; INT64_MAX when there is none. */
int64_t timers_next(const struct timers *timers);

/* Fires what is due, each at most once; a timer is no longer set when it fires. */
void timers_run(struct timers *timers);
void timers_free(struct timers *timers);

#endif
