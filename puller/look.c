/* SPDX-License-Identifier: PostgreSQL */
#include "look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "memory.h"
#include "puller.h"
#include "utf8.h"
#include "work.h"

/* What is older than this is asked for again, while somebody looks. */
#define LOOK_EVERY_MS 5000
/* A scraper comes once a minute, and wants to find something newer than its last visit. */
#define LOOKED_MS 2000
/* A connection without a batch is waited for this long, then one is asked between two. */
#define LOOK_PATIENCE_MS 2000
/* Longer than this it may not keep a connection from its messages. */
#define LOOK_LIMIT_MS 250
/* What is older than this is not shown as if it were so. */
#define LOOK_OLD_MS 300000
#define LOOK_DEAD_LETTERS 25

void
look_free(struct look *look)
{
	json_object_put(look->known);
	look->known = NULL;
}

void
look_want(struct puller *puller, int64_t now)
{
	puller->look.wanted_ms = now;
}

static bool
is_asking(const struct puller *puller)
{
	for (int i = 0; i < puller->workers; i++)
	{
		if (puller->worker[i].work == WORK_LOOK)
		{
			return true;
		}
	}
	return false;
}

static bool
is_due(const struct puller *puller, int64_t now)
{
	const struct look *look = &puller->look;

	return !puller->stopping && look->wanted_ms != 0 && !is_asking(puller) &&
		   now - look->wanted_ms < LOOKED_MS &&
		   (look->asked_ms == 0 || now - look->asked_ms >= LOOK_EVERY_MS);
}

/* One that has nothing to do, or any when they all have been busy for a while. */
static struct worker *
find_worker(struct puller *puller, int64_t now)
{
	bool impatient = now - puller->look.asked_ms >= LOOK_EVERY_MS + LOOK_PATIENCE_MS;
	bool quiet = TAILQ_EMPTY(&puller->board.list[MESSAGE_READY]);

	for (int i = 0; i < puller->workers; i++)
	{
		struct worker *worker = &puller->worker[i];

		if (worker->db.state == DB_IDLE && (impatient || (quiet && work_is_idle(worker))))
		{
			return worker;
		}
	}
	return NULL;
}

void
look_step(struct puller *puller, int64_t now)
{
	static const char sql[] =
		"SELECT pg_catalog.jsonb_build_object('status', (SELECT pg_catalog.to_jsonb(s)"
		" || pg_catalog.jsonb_build_object("
		"'blocked_age', extract(epoch FROM pg_catalog.clock_timestamp() - s.blocked_since),"
		" 'oldest_age', extract(epoch FROM pg_catalog.clock_timestamp() - s.oldest))"
		" FROM %1$s.inbox_status() s WHERE s.source OPERATOR(pg_catalog.=) $1), 'failures',"
		" (SELECT pg_catalog.jsonb_agg("
		"pg_catalog.to_jsonb(f) || pg_catalog.jsonb_build_object("
		"'error', pg_catalog.left(f.error, 500))) FROM %1$s.inbox_failures($1, 'dead', %2$d) "
		"f))::text";
	struct worker *worker;

	if (!is_due(puller, now) || (worker = find_worker(puller, now)) == NULL)
	{
		return;
	}
	puller->look.asked_ms = now;
	work_look(worker, memory_format(sql, worker->db.facts.schema, LOOK_DEAD_LETTERS),
			  LOOK_LIMIT_MS);
}

static void
take(struct look *look, const char *text)
{
	struct json_object *known = json_tokener_parse(text);

	if (known == NULL)
	{
		snprintf(look->error, sizeof(look->error), "the database answered with no document");
		return;
	}
	json_object_put(look->known);
	look->known = known;
	look->known_ms = clock_ms();
	look->error[0] = '\0';
}

/* Another puller's message may have ended a halt, and none come here that would tell. */
static void
see_end_of_halt(struct puller *puller)
{
	struct json_object *status;
	struct json_object *since;

	if (puller->halted && puller->look.asked_ms > puller->halted_ms &&
		json_object_object_get_ex(puller->look.known, "status", &status) &&
		json_object_object_get_ex(status, "halted_since", &since) && since == NULL)
	{
		puller->halted = false;
		log_event(LOG_INFO, "source_resumed", "source", LOG_TEXT, puller->config->source, NULL);
	}
}

void
look_answered(struct puller *puller, const struct db_answer *answer)
{
	struct look *look = &puller->look;

	if (answer->outcome == DB_COMMITTED && PQntuples(answer->rows) == 1)
	{
		take(look, PQgetvalue(answer->rows, 0, 0));
		see_end_of_halt(puller);
		return;
	}
	snprintf(look->error, sizeof(look->error), "%s%s%s",
			 answer->message != NULL ? answer->message : "the connection was lost",
			 answer->sqlstate != NULL ? ", SQLSTATE " : "",
			 answer->sqlstate != NULL ? answer->sqlstate : "");
	utf8_trim(look->error);
	log_event(LOG_INFO, "look_failed", "sqlstate", LOG_TEXT, answer->sqlstate, "err", LOG_TEXT,
			  answer->message, "hint", LOG_TEXT,
			  "page and metrics lack what only the database knows; messages are not concerned. "
			  "Without the right, as the extension's owner run: SELECT inbox_grant('role', "
			  "'puller')",
			  NULL);
}

bool
look_number(const struct puller *puller, const char *name, int64_t now, double *number)
{
	const struct look *look = &puller->look;
	struct json_object *status;
	struct json_object *value;

	if (look->known == NULL || now - look->known_ms > LOOK_OLD_MS ||
		!json_object_object_get_ex(look->known, "status", &status) ||
		!json_object_object_get_ex(status, name, &value) || value == NULL)
	{
		return false;
	}
	*number = json_object_get_double(value);
	return true;
}
