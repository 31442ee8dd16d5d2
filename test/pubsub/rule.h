/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_RULE_H
#define PUBSUB_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fault.h"
#include "random.h"

enum action
{
	ACTION_REFUSE,
	ACTION_RESET,
	ACTION_STALL,
	ACTION_DELAY,
	ACTION_STATUS,
	ACTION_CUT,
	ACTION_HALF,
	ACTION_GARBAGE,
	ACTION_IGNORE,
	ACTION_REORDER,
	ACTION_EXPIRE,
	ACTION_REVOKE,
	ACTION_DUPLICATE,
	ACTION_SHARE,
	ACTION_RAW,
	ACTION_REDELIVER,
	ACTION_FAIL,
	ACTIONS
};

#define MAX_NTH 64

/* One rule of a fault script: on which events, when, and what. */
struct rule
{
	size_t number;
	unsigned events;	/* a bit for each fault_event */
	char *subscription; /* full name or id; NULL: any */
	char *token;		/* of requests that carry this one; NULL: any */
	enum action action;
	uint64_t nth[MAX_NTH];
	size_t nth_count;
	uint64_t every; /* 0: no */
	uint64_t after; /* the first that many do not count for "every" and "probability" */
	double probability;
	uint64_t times;		  /* fires at most so often; 0: no limit */
	bool after_execution; /* reset, stall: the request is executed, its answer is lost */
	int code;
	char *retry_after;
	char *text; /* message, JSON or reason */
	size_t bytes;
	int64_t delay;
	struct random random;
	uint64_t seen;
	uint64_t fired;
	struct json_object *source;
};

const char *fault_event_name(enum fault_event event);
const char *action_name(enum action action);

/* NULL and a problem that names what is wrong. */
struct rule *rule_parse(struct json_object *object, size_t number, uint64_t seed,
						struct problem *problem);

/* Counts the event if the rule is about it, and tells whether it fires. */
bool rule_fires(struct rule *rule, enum fault_event event, const char *subscription,
				const char *token);
void rule_free(struct rule *rule);

#endif
