/* SPDX-License-Identifier: PostgreSQL */
/*
 * Growing pauses: doubled after every failure up to a limit, with 20 % of jitter, so that many
 * pullers do not come back in step.
 */
#ifndef INBOX_BACKOFF_H
#define INBOX_BACKOFF_H

#include <stdint.h>
#include <stdlib.h>

struct backoff
{
	int64_t first_ms;
	int64_t limit_ms;
	unsigned failures;
};

/* Counts a failure; returns how many milliseconds to wait. */
static inline int64_t
backoff_next(struct backoff *backoff)
{
	int64_t pause = backoff->first_ms;

	for (unsigned i = 0; i < backoff->failures && pause < backoff->limit_ms; i++)
	{
		pause *= 2;
	}
	backoff->failures++;
	if (pause > backoff->limit_ms)
	{
		pause = backoff->limit_ms;
	}
	return pause * (int64_t) (80 + random() % 41) / 100;
}

static inline void
backoff_reset(struct backoff *backoff)
{
	backoff->failures = 0;
}

#endif
