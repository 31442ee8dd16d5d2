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

/* What a server does not tell, such as one that may not be asked, is as it was. */
static void
remember(char **known, const char *now)
{
	if (now != NULL)
	{
		free(*known);
		*known = memory_copy_text(now);
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
	remember(&puller->system_id, facts->system_id);
	remember(&puller->timeline, facts->timeline);
}
