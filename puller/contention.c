/* SPDX-License-Identifier: PostgreSQL */
#include "contention.h"

#define PAUSE_FIRST_MS 1000
#define PAUSE_LIMIT_MS 60000

void
contention_init(struct contention *contention)
{
	*contention = (struct contention){.pause_ms = PAUSE_FIRST_MS};
}

static int64_t
within_limit(int64_t pause)
{
	return pause < PAUSE_LIMIT_MS ? pause : PAUSE_LIMIT_MS;
}

void
contention_meet(struct contention *contention, int64_t now)
{
	contention->met++;
	/* Batches that were under way when the mode changed fail for the same reason: once counts. */
	if (contention->exclusive)
	{
		return;
	}
	if (now - contention->until > contention->pause_ms)
	{
		contention->pause_ms = PAUSE_FIRST_MS;
	}
	contention->exclusive = true;
	contention->until = now + contention->pause_ms;
	contention->pause_ms = within_limit(contention->pause_ms * 2);
}

bool
contention_is_exclusive(struct contention *contention, int64_t now)
{
	if (contention->exclusive && now >= contention->until)
	{
		contention->exclusive = false;
		contention->until = now;
	}
	return contention->exclusive;
}
