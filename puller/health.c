/* SPDX-License-Identifier: PostgreSQL */
#include "health.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "text.h"
#include "utf8.h"

/* A pull that has gone well for longer than a connection takes to fail has got through. */
#define PULL_GOES_WELL_MS 12000
/* A batch may wait for others' locks as long as its statements may run. */
#define STUCK_AFTER_LIMITS 4
/* After its last verdict a puller counts as working for so long. */
#define WARM_MS 5000

static size_t
count_connected(const struct puller *puller)
{
	size_t count = 0;

	for (int i = 0; i < puller->workers; i++)
	{
		count += puller->worker[i].db.state >= DB_IDLE;
	}
	return count;
}

static bool
pulls_fail(const struct puller *puller, int64_t now)
{
	const struct pull_state *pull = &puller->pull;

	return pull->failing_since != CLOCK_NEVER &&
		   (pull->in_flight == 0 || now - pull->started_ms < PULL_GOES_WELL_MS);
}

/* Since when messages are held and none has got a verdict; CLOCK_NEVER: it is not so. */
static int64_t
stuck_since(const struct puller *puller)
{
	size_t waiting = puller->board.count[MESSAGE_READY] + puller->board.count[MESSAGE_RUNNING];

	return waiting > 0 ? puller->progress_ms : CLOCK_NEVER;
}

static bool
is_stuck(const struct puller *puller, int64_t now)
{
	int64_t since = stuck_since(puller);

	return since != CLOCK_NEVER &&
		   now - since > STUCK_AFTER_LIMITS * puller->config->handler_timeout;
}

/* A quick handler holds nothing most of the time. */
static bool
is_warm(const struct puller *puller, int64_t now)
{
	return puller->metrics.committed > 0 && now - puller->progress_ms < WARM_MS;
}

enum health_state
health_state(const struct puller *puller, int64_t now)
{
	if (puller->stopping)
	{
		return HEALTH_STOPPING;
	}
	if (count_connected(puller) == 0)
	{
		return puller->db_down_since == CLOCK_NEVER && puller->metrics.connected == 0
				   ? HEALTH_STARTING
				   : HEALTH_NO_DATABASE;
	}
	if (!auth_ready(&puller->auth, now) || pulls_fail(puller, now))
	{
		return HEALTH_NO_PUBSUB;
	}
	if (puller->halted)
	{
		return HEALTH_HALTED;
	}
	if (is_stuck(puller, now))
	{
		return HEALTH_STUCK;
	}
	return puller->board.held > 0 || is_warm(puller, now) ? HEALTH_WORKING : HEALTH_IDLE;
}

const char *
health_state_name(enum health_state state)
{
	static const char *const name[HEALTH_STATES] = {
		[HEALTH_WORKING] = "working",	  [HEALTH_IDLE] = "idle",
		[HEALTH_STARTING] = "starting",	  [HEALTH_STOPPING] = "stopping",
		[HEALTH_STUCK] = "stuck",		  [HEALTH_HALTED] = "halted",
		[HEALTH_NO_PUBSUB] = "no_pubsub", [HEALTH_NO_DATABASE] = "no_database",
	};

	return name[state];
}

__attribute__((format(printf, 5, 6))) static void
set(struct health_check *check, const char *name, bool ready, bool ok, const char *format, ...)
{
	va_list arguments;

	check->name = name;
	check->ready = ready;
	check->ok = ok;
	va_start(arguments, format);
	vsnprintf(check->text, sizeof(check->text), format, arguments);
	va_end(arguments);
	utf8_trim(check->text);
}

static long long
seconds_since(int64_t since, int64_t now)
{
	return (long long) (now - since) / 1000;
}

static void
look_at_database(const struct puller *puller, int64_t now, struct health_check *check)
{
	size_t connected = count_connected(puller);

	if (connected > 0)
	{
		set(check, "database", true, true, "%zu of %d connections", connected, puller->workers);
	}
	else if (puller->db_down_since != CLOCK_NEVER)
	{
		set(check, "database", true, false,
			"no connection for %lld s; it is tried again by itself, see db_connect_failed and "
			"db_refused in the log",
			seconds_since(puller->db_down_since, now));
	}
	else
	{
		set(check, "database", true, false, "not connected yet");
	}
}

/* The greeting resolves it, so a connection that is there has one. */
static void
look_at_handler(const struct puller *puller, struct health_check *check)
{
	for (int i = 0; i < puller->workers; i++)
	{
		const struct db *db = &puller->worker[i].db;

		if (db->state >= DB_IDLE)
		{
			set(check, "handler", true, true, "%s",
				db->facts.handler != NULL ? db->facts.handler : "none: every message is kept");
			return;
		}
	}
	set(check, "handler", true, false, "not resolved: there is no connection");
}

static void
look_at_token(const struct puller *puller, int64_t now, struct health_check *check)
{
	const char *account = auth_account(&puller->auth);

	if (auth_ready(&puller->auth, now))
	{
		set(check, "token", true, true, "%s%s%s", auth_kind(&puller->auth),
			account != NULL ? ", " : "", account != NULL ? account : "");
	}
	else
	{
		set(check, "token", true, false, "there is none: see token_failed in the log");
	}
}

static void
look_at_pulls(const struct puller *puller, int64_t now, struct health_check *check)
{
	const struct pull_state *pull = &puller->pull;

	if (pulls_fail(puller, now))
	{
		set(check, "pubsub", false, false, "pulls have failed for %lld s: %s",
			seconds_since(pull->failing_since, now), pull->trouble);
	}
	else
	{
		set(check, "pubsub", false, true, "%u pulls under way", pull->in_flight);
	}
}

static void
look_at_progress(const struct puller *puller, int64_t now, struct health_check *check)
{
	if (puller->halted)
	{
		set(check, "progress", false, false,
			"the source is halted: message after message failed, see the last errors");
	}
	else if (is_stuck(puller, now))
	{
		set(check, "progress", false, false, "%zu messages are held and none got on for %lld s",
			puller->board.held, seconds_since(stuck_since(puller), now));
	}
	else
	{
		set(check, "progress", false, true, "%zu messages held", puller->board.held);
	}
}

void
health_look(const struct puller *puller, int64_t now, struct health *health)
{
	look_at_database(puller, now, &health->check[0]);
	look_at_handler(puller, &health->check[1]);
	look_at_token(puller, now, &health->check[2]);
	look_at_pulls(puller, now, &health->check[3]);
	look_at_progress(puller, now, &health->check[4]);
	health->state = health_state(puller, now);
	health->ready = !puller->stopping;
	health->ok = !puller->stopping;
	for (size_t i = 0; i < HEALTH_CHECKS; i++)
	{
		health->ok &= health->check[i].ok;
		health->ready &= health->check[i].ok || !health->check[i].ready;
	}
}

void
health_write(const struct health *health, bool only_ready, struct buffer *out)
{
	for (size_t i = 0; i < HEALTH_CHECKS; i++)
	{
		const struct health_check *check = &health->check[i];

		if (check->ready || !only_ready)
		{
			text_add(out, "%s %s: %s\n", check->ok ? "ok" : "FAILED", check->name, check->text);
		}
	}
	text_add(out, "%s\n", health_state_name(health->state));
}
