/* SPDX-License-Identifier: PostgreSQL */
#include "stop.h"

#include "clock.h"
#include "fault_point.h"
#include "log.h"
#include "work.h"

/* How soon a pull in flight gets what was given back. */
#define ECHO_MS 500

void
stop_begin(struct puller *puller)
{
	(void) FAULT_POINT("stop-begin");
	puller->stopping = true;
	puller->stop_deadline = clock_ms() + puller->config->grace;
	log_event(LOG_INFO, "stopping", "held", LOG_INT, (int64_t) puller->board.held, "grace",
			  LOG_SECONDS, puller->config->grace, NULL);
	for (int i = 0; i < puller->workers; i++)
	{
		work_stop(&puller->worker[i]);
	}
}

static bool
all_work_ended(const struct puller *puller)
{
	for (int i = 0; i < puller->workers; i++)
	{
		if (puller->worker[i].db.state == DB_BUSY)
		{
			return false;
		}
	}
	return ack_is_idle(&puller->ack) && lease_is_idle(&puller->lease);
}

/*
 * What is given back may be delivered to a pull of ours that is still in flight, and would be
 * leased to nobody when we are gone.
 */
static int64_t
echo_end(const struct puller *puller)
{
	return puller->pull.in_flight > 0 ? puller->lease.returned_ms + ECHO_MS : 0;
}

void
stop_step(struct puller *puller, int64_t now)
{
	bool ended = all_work_ended(puller);

	(void) FAULT_POINT("stop-step");
	if (now < puller->stop_deadline && (!ended || now < echo_end(puller)))
	{
		return;
	}
	if (!ended)
	{
		log_event(LOG_WARNING, "grace_over", "held", LOG_INT, (int64_t) puller->board.held, "hint",
				  LOG_TEXT, "what was not acknowledged comes again; nothing is lost", NULL);
	}
	(void) FAULT_POINT("stop-end");
	puller_exit(puller, 0);
}

int64_t
stop_deadline(const struct puller *puller, int64_t now)
{
	int64_t echo = echo_end(puller);

	return echo > now && echo < puller->stop_deadline ? echo : puller->stop_deadline;
}
