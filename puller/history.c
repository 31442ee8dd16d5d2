/* SPDX-License-Identifier: PostgreSQL */
#include "history.h"

static struct history_totals
read_totals(const struct metrics *metrics)
{
	uint64_t dead = metrics_total(metrics, METRICS_DEAD);

	return (struct history_totals){
		.applied = metrics_total(metrics, METRICS_APPLIED),
		.duplicate = metrics_total(metrics, METRICS_DUPLICATE),
		.failed = metrics_total(metrics, METRICS_RETRYING) +
				  metrics_total(metrics, METRICS_HALTED) + dead,
		.dead = dead,
		.aged = metrics->age.count,
		.age = metrics->age.sum,
	};
}

void
history_init(struct history *history, int64_t now)
{
	*history = (struct history){.end_ms = now + HISTORY_STEP_MS};
}

static struct history_step
make_step(const struct history_totals *before, const struct history_totals *now, double age_max)
{
	uint64_t aged = now->aged - before->aged;

	return (struct history_step){
		.applied = (uint32_t) (now->applied - before->applied),
		.duplicate = (uint32_t) (now->duplicate - before->duplicate),
		.failed = (uint32_t) (now->failed - before->failed),
		.dead = (uint32_t) (now->dead - before->dead),
		.age = aged > 0 ? (float) ((now->age - before->age) / (double) aged) : -1,
		.age_max = (float) age_max,
	};
}

/* Nothing was counted in the steps that passed while the loop slept: the first one has it all. */
void
history_take(struct history *history, struct metrics *metrics, size_t held, int health, int64_t now)
{
	while (now >= history->end_ms)
	{
		struct history_totals totals = read_totals(metrics);
		struct history_step *step = &history->step[history->count++ % HISTORY_STEPS];

		*step = make_step(&history->totals, &totals, metrics->age_max);
		step->held = (uint32_t) held;
		step->health = (char) health;
		metrics->age_max = 0;
		history->totals = totals;
		history->end_ms += HISTORY_STEP_MS;
		/* A machine that slept for longer than all steps together. */
		if (now - history->end_ms > (int64_t) HISTORY_STEPS * HISTORY_STEP_MS)
		{
			history->end_ms = now - (int64_t) HISTORY_STEPS * HISTORY_STEP_MS;
		}
	}
}

const struct history_step *
history_at(const struct history *history, size_t back)
{
	if (back >= HISTORY_STEPS || back >= history->count)
	{
		return NULL;
	}
	return &history->step[(history->count - 1 - back) % HISTORY_STEPS];
}
