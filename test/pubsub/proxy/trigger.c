/* SPDX-License-Identifier: PostgreSQL */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "timer.h"
#include "trigger.h"

#define PROBLEM 200

static const char *const cue_names[CUES] = {
	[CUE_CONNECT] = "connect",
	[CUE_CLIENT_BYTE] = "client-byte",
	[CUE_SERVER_BYTE] = "server-byte",
	[CUE_COMMIT_QUERY] = "commit-query",
	[CUE_COMMIT_SENT] = "commit-sent",
	[CUE_COMMIT_ANSWER] = "commit-answer",
	[CUE_COMMIT_ANSWERED] = "commit-answered",
	[CUE_REQUEST] = "request",
	[CUE_REQUEST_SENT] = "request-sent",
	[CUE_RESPONSE] = "response",
	[CUE_RESPONSE_SENT] = "response-sent",
};

static const char *const deed_names[DEEDS] = {
	[DEED_CUT] = "cut",		[DEED_CUT_CLIENT] = "cut-client", [DEED_CUT_SERVER] = "cut-server",
	[DEED_STALL] = "stall", [DEED_DELAY] = "delay",
};

/* The place of the name in the list, or -1. */
static int
find(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
	{
		if (strcmp(names[i], name) == 0)
			return i;
	}
	return -1;
}

static bool
parse_number(struct trigger *trigger, const char *name, const char *text)
{
	char *end;
	uint64_t number = strtoull(text, &end, 10);

	if (end == text || *end != '\0')
		return false;
	if (strcmp(name, "nth") == 0)
		trigger->nth = number;
	else if (strcmp(name, "every") == 0)
		trigger->every = number;
	else if (strcmp(name, "offset") == 0)
		trigger->offset = number;
	else if (strcmp(name, "at") == 0)
		trigger->at = number;
	else if (strcmp(name, "ms") == 0)
		trigger->delay = (int64_t) number * MILLISECOND;
	else
		return false;
	return true;
}

static bool
parse_word(struct trigger *trigger, char *word)
{
	char *value = strchr(word, '=');
	int found = 0;

	if (value == NULL)
		return false;
	*value++ = '\0';
	if (strcmp(word, "on") == 0)
	{
		found = find(cue_names, CUES, value);
		trigger->cue = found < 0 ? CUE_CONNECT : (enum cue) found;
		return found >= 0;
	}
	if (strcmp(word, "do") == 0)
	{
		found = find(deed_names, DEEDS, value);
		trigger->deed = found < 0 ? DEED_CUT : (enum deed) found;
		return found >= 0;
	}
	if (strcmp(word, "path") != 0)
		return parse_number(trigger, word, value);
	free(trigger->path);
	trigger->path = memory_copy(value);
	return true;
}

struct trigger *
trigger_parse(const char *words, char *problem)
{
	struct trigger *trigger = memory_get(sizeof(*trigger));
	char *copy = memory_copy(words);
	char *rest = copy;
	char *word;
	bool has_cue = false;
	bool has_deed = false;
	bool good = true;

	while (good && (word = strsep(&rest, " ")) != NULL)
	{
		has_cue |= strncmp(word, "on=", 3) == 0;
		has_deed |= strncmp(word, "do=", 3) == 0;
		good = *word == '\0' || parse_word(trigger, word);
		if (!good)
			snprintf(problem, PROBLEM, "\"%.50s\" is not understood", word);
	}
	if (good && (!has_cue || !has_deed))
	{
		good = false;
		snprintf(problem, PROBLEM, "a trigger needs on=POINT and do=DEED");
	}
	free(copy);
	if (good)
		return trigger;
	trigger_free(trigger);
	return NULL;
}

bool
trigger_fires(struct trigger *trigger, enum cue cue, const char *request_line)
{
	if (trigger->cue != cue ||
		(trigger->path != NULL && (request_line == NULL || !strstr(request_line, trigger->path))))
		return false;
	trigger->seen++;
	if ((trigger->nth > 0 && trigger->seen != trigger->nth) ||
		(trigger->every > 0 && trigger->seen % trigger->every != 0))
		return false;
	trigger->fired++;
	return true;
}

void
trigger_free(struct trigger *trigger)
{
	free(trigger->path);
	free(trigger);
}
