/* SPDX-License-Identifier: PostgreSQL */
#include "log_limit.h"

#include <stddef.h>
#include <string.h>

/* There are fewer events than this; one beyond would not be limited. */
#define EVENTS_MAX 128
#define TOLD_EVERY_MS 10000
#define MS_PER_LINE (1000 / LOG_LIMIT_PER_SECOND)

/* What may still be written is kept as the time at which all of it may be written again. */
static struct limit
{
	const char *event;
	int64_t full_ms;  /* the burst is whole again then */
	int64_t since_ms; /* when the first was left out of those not told of */
	uint64_t left_out;
} limits[EVENTS_MAX];

static size_t limit_count;

static struct limit *
find(const char *event)
{
	for (size_t i = 0; i < limit_count; i++)
	{
		if (limits[i].event == event || strcmp(limits[i].event, event) == 0)
		{
			return &limits[i];
		}
	}
	if (limit_count == EVENTS_MAX)
	{
		return NULL;
	}
	limits[limit_count].event = event;
	return &limits[limit_count++];
}

bool
log_limit_take(const char *event, int64_t now_ms)
{
	struct limit *limit = find(event);

	if (limit == NULL)
	{
		return true;
	}
	limit->full_ms = limit->full_ms > now_ms ? limit->full_ms : now_ms;
	if (limit->full_ms - now_ms >= (int64_t) LOG_LIMIT_BURST * MS_PER_LINE)
	{
		limit->since_ms = limit->left_out++ == 0 ? now_ms : limit->since_ms;
		return false;
	}
	limit->full_ms += MS_PER_LINE;
	return true;
}

const char *
log_limit_next(int64_t now_ms, bool at_once, uint64_t *count)
{
	for (size_t i = 0; i < limit_count; i++)
	{
		struct limit *limit = &limits[i];

		if (limit->left_out > 0 && (at_once || now_ms - limit->since_ms >= TOLD_EVERY_MS))
		{
			*count = limit->left_out;
			limit->left_out = 0;
			return limit->event;
		}
	}
	return NULL;
}
