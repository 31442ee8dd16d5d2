/* SPDX-License-Identifier: PostgreSQL */
#include "purge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "iam.h"
#include "log.h"
#include "memory.h"
#include "puller.h"

/* A batch is followed by a pause of this many times as long, so that the work goes on beside it. */
#define PAUSE_FACTOR 9
/* For the end of transactions that may not know yet what is forgotten. */
#define WAIT_MS 1000
/* After a failure, and while another one is at it. */
#define LATER_MS 60000

static struct puller *
puller_of(struct purge *purge)
{
	return (struct puller *) purge->db.context;
}

/* ---- answers --------------------------------------------------------------------------- */

static const char *
column(const PGresult *rows, const char *name)
{
	int number = PQfnumber(rows, name);

	return number >= 0 && !PQgetisnull(rows, 0, number) ? PQgetvalue(rows, 0, number) : NULL;
}

static void
end_for_now(struct purge *purge, int64_t pause)
{
	purge->at_it = false;
	purge->ended_ms = clock_ms();
	purge->next_ms = purge->ended_ms + pause;
	db_close(&purge->db, "the purge is over for now");
}

static void
take_state(struct purge *purge, const PGresult *rows)
{
	const char *state = column(rows, "state");
	int64_t every = puller_of(purge)->config->purge_every;
	int64_t now = clock_ms();

	if (strcmp(state, "waiting") == 0)
	{
		purge->next_ms = now + WAIT_MS;
	}
	else if (strcmp(state, "done") == 0)
	{
		log_event(LOG_INFO, "purge_done", "forgotten", LOG_TEXT, column(rows, "forgotten"),
				  "settled", LOG_TEXT, column(rows, "settled"), NULL);
		end_for_now(purge, every);
	}
	else if (strcmp(state, "busy") == 0)
	{
		end_for_now(purge, every < LATER_MS ? every : LATER_MS);
	}
	else if (strcmp(state, "idle") == 0)
	{
		end_for_now(purge, every);
	}
	else
	{
		purge->next_ms = now + (now - purge->started_ms) * PAUSE_FACTOR;
	}
}

static void
answered(void *context, struct db *db, const struct db_answer *answer)
{
	struct purge *purge = &((struct puller *) context)->purge;

	if (answer->outcome == DB_COMMITTED && answer->rows != NULL && PQntuples(answer->rows) == 1)
	{
		take_state(purge, answer->rows);
		return;
	}
	/* Nothing is lost: the next batch goes on where the last one that was committed ended. */
	log_event(LOG_WARNING, "purge_failed", "sqlstate", LOG_TEXT, answer->sqlstate, "err", LOG_TEXT,
			  answer->message, "hint", LOG_TEXT, "it goes on by itself after a pause", NULL);
	purge->ended_ms = CLOCK_NEVER;
	purge->next_ms = clock_ms() + LATER_MS;
	(void) db;
}

static void
ready(void *context, struct db *db)
{
	(void) context;
	(void) db;
}

/* What is wrong has been logged, and the workers see to what concerns them. */
static void
down(void *context, struct db *db, enum db_refusal refusal)
{
	struct purge *purge = &((struct puller *) context)->purge;

	(void) db;
	(void) refusal;
	purge->ended_ms = CLOCK_NEVER;
	purge->next_ms = clock_ms() + LATER_MS;
}

static const struct db_events events = {.ready = ready, .answered = answered, .down = down};

/* ---- work ------------------------------------------------------------------------------ */

void
purge_init(struct puller *puller)
{
	struct purge *purge = &puller->purge;
	char host[256] = "";

	(void) gethostname(host, sizeof(host) - 1);
	purge->runner = memory_format("inbox-puller %ld on %s", (long) getpid(), host);
	db_init(&purge->db, puller->workers + 1, puller->config, puller->connector, &events, puller);
	purge->db.serves = false;
	purge->ended_ms = CLOCK_NEVER;
}

void
purge_free(struct purge *purge)
{
	db_free(&purge->db);
	free(purge->runner);
}

static void
send_batch(struct purge *purge, int64_t now)
{
	struct db_statement statement = {
		.lock = DB_LOCK_NONE,
		.count = 1,
		.types = {25}, /* text */
		.values = {purge->runner},
		.sizes = {(int) strlen(purge->runner)},
	};
	char *sql = memory_format("SELECT state, forgotten::text, settled::text"
							  " FROM %s.inbox_purge_batch($1)",
							  purge->db.facts.schema);

	if (!purge->at_it)
	{
		log_event(LOG_DEBUG, "purge_begins", "runner", LOG_TEXT, purge->runner, NULL);
	}
	purge->at_it = true;
	purge->started_ms = now;
	statement.sql = sql;
	db_run(&purge->db, &statement);
	free(sql);
}

static bool
is_wanted(const struct puller *puller)
{
	return puller->config->purge_every > 0 && !puller->config->shadow && !puller->stopping &&
		   puller->db_down_since == CLOCK_NEVER;
}

/* --purge-every may have become shorter since the last one ended. */
static int64_t
next_time(const struct puller *puller)
{
	const struct purge *purge = &puller->purge;

	if (purge->at_it || purge->ended_ms == CLOCK_NEVER ||
		purge->next_ms < purge->ended_ms + puller->config->purge_every)
	{
		return purge->next_ms;
	}
	return purge->ended_ms + puller->config->purge_every;
}

void
purge_step(struct puller *puller, int64_t now)
{
	struct purge *purge = &puller->purge;

	if (!is_wanted(puller) || now < next_time(puller))
	{
		return;
	}
	if (purge->db.state == DB_IDLE)
	{
		send_batch(purge, now);
	}
	else if (purge->db.state == DB_DOWN && now >= purge->db.retry_ms &&
			 puller->worker[0].db.state >= DB_IDLE)
	{
		iam_connect(puller->http, puller->config, &purge->db);
	}
}

int64_t
purge_deadline(const struct puller *puller, int64_t now)
{
	const struct purge *purge = &puller->purge;

	if (purge->db.state == DB_GREETING)
	{
		return purge->db.greeting_end;
	}
	if (db_is_broken(&purge->db))
	{
		return now;
	}
	if (!is_wanted(puller) || purge->db.state == DB_BUSY || purge->db.state == DB_CONNECTING)
	{
		return CLOCK_NEVER;
	}
	/* Past both, it waits for a worker to be connected, and that is an event. */
	if (next_time(puller) > now)
	{
		return next_time(puller);
	}
	return purge->db.state == DB_DOWN && purge->db.retry_ms > now ? purge->db.retry_ms
																  : CLOCK_NEVER;
}
