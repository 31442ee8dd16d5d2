/* SPDX-License-Identifier: PostgreSQL */
/*
 * The last hour in steps of ten seconds, for the plots of the status page. A step is taken from
 * the metrics when the loop next turns behind its end, so an idle puller need not wake for it.
 */
#ifndef INBOX_HISTORY_H
#define INBOX_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "metrics.h"

#define HISTORY_STEP_MS 10000
#define HISTORY_STEPS 360

struct history_totals
{
	uint64_t applied;
	uint64_t duplicate;
	uint64_t failed; /* attempts of messages that failed, those that made them dead among them */
	uint64_t dead;
	uint64_t aged; /* messages whose age is known */
	double age;	   /* the sum of their ages, in seconds */
};

struct history_step
{
	uint32_t applied, duplicate, failed, dead;
	float age;	   /* the average, in seconds; negative: no message */
	float age_max; /* in seconds */
	uint32_t held; /* messages at its end */
	char health;   /* enum health_state at its end */
};

struct history
{
	struct history_step step[HISTORY_STEPS];
	uint64_t count;				  /* of steps so far; the last one is at count - 1 */
	int64_t end_ms;				  /* of the step under way */
	struct history_totals totals; /* at its beginning */
};

void history_init(struct history *history, int64_t now);

/* Ends the steps that are over; "held" and "health" are as things stood until now. */
void history_take(struct history *history, struct metrics *metrics, size_t held, int health,
				  int64_t now);

/* The step "back" steps before the last one that has ended, from 0; NULL: there was none. */
const struct history_step *history_at(const struct history *history, size_t back);

#endif
