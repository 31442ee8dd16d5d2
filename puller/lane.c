/* SPDX-License-Identifier: PostgreSQL */
#include "lane.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

static int
compare(const void *one, const void *other)
{
	return strcmp(((const struct lane *) one)->ordering_key,
				  ((const struct lane *) other)->ordering_key);
}

static struct lane *
find(struct lanes *lanes, char *ordering_key)
{
	struct lane sought = {.ordering_key = ordering_key};
	struct lane *const *found = tfind(&sought, &lanes->root, compare);

	return found != NULL ? *found : NULL;
}

static struct lane *
add(struct lanes *lanes, const char *ordering_key)
{
	struct lane *lane = memory_new(sizeof(*lane));

	lane->ordering_key = memory_copy_text(ordering_key);
	if (tsearch(lane, &lanes->root, compare) == NULL)
	{
		memory_exhausted();
	}
	return lane;
}

void
lane_enter(struct lanes *lanes, struct message *message)
{
	if (message->ordering_key == NULL)
	{
		return;
	}
	message->lane = find(lanes, message->ordering_key);
	if (message->lane == NULL)
	{
		message->lane = add(lanes, message->ordering_key);
	}
	message->lane->held++;
}

void
lane_leave(struct lanes *lanes, struct message *message)
{
	struct lane *lane = message->lane;

	if (lane == NULL)
	{
		return;
	}
	message->lane = NULL;
	if (--lane->held == 0)
	{
		tdelete(lane, &lanes->root, compare);
		free(lane->ordering_key);
		free(lane);
	}
}

bool
lane_may_run(const struct message *message, const void *runner)
{
#ifndef INBOX_WITHOUT_LANES
	return message->lane == NULL || message->lane->running == 0 || message->lane->runner == runner;
#else
	(void) message;
	(void) runner;
	return true;
#endif
}

void
lane_start(struct message *message, const void *runner)
{
	if (message->lane != NULL)
	{
		message->lane->runner = runner;
		message->lane->running++;
	}
}

void
lane_stop(struct message *message)
{
	if (message->lane != NULL)
	{
		message->lane->running--;
	}
}

void
lane_note_gap(struct message *message)
{
	struct lane *lane = message->lane;

	if (lane != NULL && (lane->gap == 0 || lane->gap > message->sequence))
	{
		lane->gap = message->sequence;
	}
}
