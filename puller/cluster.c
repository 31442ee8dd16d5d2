/* SPDX-License-Identifier: PostgreSQL */
#include "cluster.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "memory.h"
#include "settle.h"

static bool
differs(const char *before, const char *now)
{
	return before != NULL && now != NULL && strcmp(before, now) != 0;
}

static bool
is_elsewhere(const struct db_facts *facts, const char *system_id, const char *timeline)
{
	return differs(system_id, facts->system_id) || differs(timeline, facts->timeline);
}

/* A primary that was replaced may live on, and commit what nobody will ever see. */
static void
leave_others(struct puller *puller, const struct db_facts *facts)
{
	for (int i = 0; i < puller->workers; i++)
	{
		struct worker *worker = &puller->worker[i];

		if (worker->db.state >= DB_IDLE &&
			is_elsewhere(&worker->db.facts, facts->system_id, facts->timeline))
		{
			worker->work = WORK_NONE;
			settle_release(worker);
			db_close(&worker->db, "it is to the database as it was before");
		}
	}
}

void
cluster_watch(struct puller *puller, const struct db_facts *facts)
{
	if (is_elsewhere(facts, puller->system_id, puller->timeline))
	{
		log_event(
			LOG_ERROR, "database_changed", "system_before", LOG_TEXT, puller->system_id,
			"system_now", LOG_TEXT, facts->system_id, "timeline_before", LOG_TEXT, puller->timeline,
			"timeline_now", LOG_TEXT, facts->timeline, "hint", LOG_TEXT,
			"a failover or a restore: commits acknowledged before may be missing here; unless "
			"the new primary was a synchronous standby, seek the subscription back: inbox-puller "
			"--seek restore-point shows to when, and --yes does it; the claims make the replay "
			"harmless (docs/restore.md)",
			NULL);
		/* First, so that what ran there is given up as well where it follows what is dropped. */
		leave_others(puller, facts);
		ack_drop(&puller->ack);
	}
	free(puller->system_id);
	free(puller->timeline);
	puller->system_id = memory_copy_text(facts->system_id);
	puller->timeline = memory_copy_text(facts->timeline);
}
