/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memory.h"
#include "timer.h"

int64_t
timer_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

static void
place(struct timers *timers, struct timer *timer, size_t slot)
{
	timers->heap[slot - 1] = timer;
	timer->slot = slot;
}

static void
sift_up(struct timers *timers, struct timer *timer)
{
	size_t slot = timer->slot;

	while (slot > 1 && timers->heap[slot / 2 - 1]->at > timer->at)
	{
		place(timers, timers->heap[slot / 2 - 1], slot);
		slot /= 2;
	}
	place(timers, timer, slot);
}

static void
sift_down(struct timers *timers, struct timer *timer)
{
	size_t slot = timer->slot;

	for (;;)
	{
		size_t child = 2 * slot;

		if (child > timers->count)
			break;
		if (child < timers->count && timers->heap[child]->at < timers->heap[child - 1]->at)
			child++;
		if (timers->heap[child - 1]->at >= timer->at)
			break;
		place(timers, timers->heap[child - 1], slot);
		slot = child;
	}
	place(timers, timer, slot);
}

void
timer_set(struct timers *timers, struct timer *timer, int64_t at)
{
	timer->at = at;
	if (timer->slot == 0)
	{
		if (timers->count == timers->room)
		{
			timers->room = timers->room ? 2 * timers->room : 64;
			timers->heap = memory_resize(timers->heap, timers->room * sizeof(*timers->heap));
		}
		timers->count++;
		place(timers, timer, timers->count);
	}
	sift_up(timers, timer);
	sift_down(timers, timer);
}

void
timer_cancel(struct timers *timers, struct timer *timer)
{
	size_t slot = timer->slot;
	struct timer *last;

	if (slot == 0)
		return;
	last = timers->heap[timers->count - 1];
	timers->count--;
	timer->slot = 0;
	if (last == timer)
		return;
	place(timers, last, slot);
	sift_up(timers, last);
	sift_down(timers, last);
}

int64_t
timers_next(const struct timers *timers)
{
	return timers->count > 0 ? timers->heap[0]->at : INT64_MAX;
}

void
timers_run(struct timers *timers)
{
	int64_t now = timer_now();

	while (timers_next(timers) <= now)
	{
		struct timer *timer = timers->heap[0];

		timer_cancel(timers, timer);
		timer->fire(timer);
	}
}

void
timers_free(struct timers *timers)
{
	free(timers->heap);
	memset(timers, 0, sizeof(*timers));
}
