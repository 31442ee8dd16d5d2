/* SPDX-License-Identifier: PostgreSQL */
#include "status.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

#include "clock.h"
#include "health.h"

typedef struct json_object json;

/* ---- json-c, shorter ---------------------------------------------------------------------------- */

static void
put_text(json *object, const char *name, const char *text)
{
	json_object_object_add(object, name, text != NULL ? json_object_new_string(text) : NULL);
}

static void
put_int(json *object, const char *name, uint64_t number)
{
	json_object_object_add(object, name, json_object_new_int64((int64_t) number));
}

static void
put_bool(json *object, const char *name, bool value)
{
	json_object_object_add(object, name, json_object_new_boolean(value));
}

/* To the microsecond, and without the digits that a double has behind that. */
static json *
seconds(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6f", value);
	return json_object_new_double_s(value, text);
}

static void
put_seconds(json *object, const char *name, double value)
{
	json_object_object_add(object, name, seconds(value));
}

static json *
put_object(json *object, const char *name)
{
	json *member = json_object_new_object();

	json_object_object_add(object, name, member);
	return member;
}

static json *
put_array(json *object, const char *name)
{
	json *member = json_object_new_array();

	json_object_object_add(object, name, member);
	return member;
}

static json *
append_object(json *array)
{
	json *element = json_object_new_object();

	json_object_array_add(array, element);
	return element;
}

/* ---- its parts ---------------------------------------------------------------------------------- */

static void
put_what(const struct puller *puller, json *status)
{
	const struct config *config = puller->config;

	put_text(status, "version", INBOX_VERSION);
	put_text(status, "source", config->source);
	put_text(status, "subscription", config->subscription);
	put_text(status, "endpoint", config->endpoint);
	put_text(status, "handler", config->as_dead_letters ? NULL : config->handler);
	put_int(status, "now", (uint64_t) (clock_real_us() / 1000));
	put_int(status, "started", (uint64_t) (puller->started_us / 1000));
	put_bool(status, "halted", puller->halted);
}

static void
put_health(const struct puller *puller, int64_t now, json *status)
{
	struct health health;
	json *checks = put_array(status, "checks");

	health_look(puller, now, &health);
	put_text(status, "state", health_state_name(health.state));
	put_bool(status, "ready", health.ready);
	put_bool(status, "healthy", health.ok);
	for (size_t i = 0; i < HEALTH_CHECKS; i++)
	{
		json *check = append_object(checks);

		put_text(check, "name", health.check[i].name);
		put_bool(check, "ok", health.check[i].ok);
		put_text(check, "text", health.check[i].text);
	}
}

static void
put_counts(const struct metrics *metrics, json *status)
{
	json *verdicts = put_object(status, "verdicts");
	json *label = put_object(status, "label");
	json *values = put_array(label, "values");

	for (enum metrics_verdict verdict = 0; verdict < METRICS_VERDICTS; verdict++)
	{
		put_int(verdicts, metrics_verdict_name(verdict), metrics_total(metrics, verdict));
	}
	put_text(label, "name", metrics->label.attribute);
	for (size_t i = 0; metrics->label.attribute != NULL && i < metrics->label.count; i++)
	{
		json *value = append_object(values);

		put_text(value, "value", label_value(&metrics->label, i));
		put_int(value, "applied", metrics->messages[METRICS_APPLIED][i]);
		put_int(value, "duplicate", metrics->messages[METRICS_DUPLICATE][i]);
		put_int(value, "dead", metrics->messages[METRICS_DEAD][i]);
		put_int(value, "failed",
				metrics->messages[METRICS_RETRYING][i] + metrics->messages[METRICS_HALTED][i]);
	}
	put_int(status, "pulled", metrics->pulled);
	put_int(status, "dead_duplicates", metrics->dead_duplicates);
}

/* Arrays from the oldest step to the newest; what was before the start is null. */
static void
put_history(const struct puller *puller, json *status)
{
	static const char *const name[] = {"applied", "duplicate", "failed", "dead",
									   "age",	  "age_max",   "held",	 "state"};
	json *history = put_object(status, "history");
	json *array[sizeof(name) / sizeof(name[0])];

	put_int(history, "step", HISTORY_STEP_MS);
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
	{
		array[i] = put_array(history, name[i]);
	}
	for (size_t back = HISTORY_STEPS; back-- > 0;)
	{
		const struct history_step *step = history_at(&puller->history, back);

		if (step == NULL)
		{
			continue;
		}
		json_object_array_add(array[0], json_object_new_int64(step->applied));
		json_object_array_add(array[1], json_object_new_int64(step->duplicate));
		json_object_array_add(array[2], json_object_new_int64(step->failed));
		json_object_array_add(array[3], json_object_new_int64(step->dead));
		json_object_array_add(array[4], step->age < 0 ? NULL : seconds((double) step->age));
		json_object_array_add(array[5], step->age < 0 ? NULL : seconds((double) step->age_max));
		json_object_array_add(array[6], json_object_new_int64(step->held));
		json_object_array_add(
			array[7], json_object_new_string(health_state_name((enum health_state) step->health)));
	}
}

static void
put_troubles(const struct puller *puller, json *status)
{
	json *array = put_array(status, "errors");

	for (size_t i = 0; i < puller->troubles.count; i++)
	{
		const struct trouble *trouble = &puller->troubles.trouble[i];
		json *element = append_object(array);

		put_int(element, "at", (uint64_t) trouble->at_ms);
		put_int(element, "times", trouble->times);
		put_text(element, "level", trouble->level == LOG_ERROR ? "error" : "warning");
		put_text(element, "event", trouble->event);
		put_text(element, "sqlstate", trouble->sqlstate);
		put_text(element, "error", trouble->error);
		put_text(element, "hint", trouble->hint);
		put_text(element, "key", trouble->key);
		put_text(element, "message_id", trouble->message_id);
	}
}

/* ---- connections ---------------------------------------------------------------------------------- */

static const char *
describe_worker(const struct worker *worker)
{
	static const char *const state[] = {
		[DB_DOWN] = "down",
		[DB_CONNECTING] = "connecting",
		[DB_GREETING] = "greeting",
		[DB_IDLE] = "idle",
	};

	if (worker->db.state != DB_BUSY)
	{
		return state[worker->db.state];
	}
	switch (worker->work)
	{
		case WORK_FAIL:
			return "recording a failure";
		case WORK_LOOK:
			return "asking for this page";
		case WORK_NONE:
		case WORK_RUN:
			break;
	}
	return worker->db.lock == DB_LOCK_EXCLUSIVE ? "running, alone" : "running";
}

static void
put_workers(const struct puller *puller, int64_t now, json *status)
{
	json *array = put_array(status, "workers");

	for (int i = 0; i < puller->workers; i++)
	{
		const struct worker *worker = &puller->worker[i];
		json *element = append_object(array);
		bool busy = worker->db.state == DB_BUSY;

		put_int(element, "number", (uint64_t) worker->db.number);
		put_text(element, "state", describe_worker(worker));
		put_int(element, "messages", busy && worker->work == WORK_RUN ? worker->run_count : 0);
		put_seconds(element, "for", busy ? (double) (now - worker->started_ms) / 1000 : 0);
		if (worker->db.connection != NULL)
		{
			put_int(element, "pid", (uint64_t) PQbackendPID(worker->db.connection));
			put_text(element, "database", PQdb(worker->db.connection));
			put_text(element, "host", PQhost(worker->db.connection));
			put_text(element, "user", PQuser(worker->db.connection));
		}
		if (worker->db.state == DB_DOWN && worker->db.retry_ms > now)
		{
			put_seconds(element, "retry_in", (double) (worker->db.retry_ms - now) / 1000);
		}
	}
}

/* ---- leases and requests -------------------------------------------------------------------------- */

/* The lease that ends first; CLOCK_NEVER: none is held. */
static int64_t
nearest_end(const struct message_board *board)
{
	int64_t nearest = CLOCK_NEVER;
	const struct message *message;

	for (int state = 0; state < MESSAGE_RETURNING; state++)
	{
		TAILQ_FOREACH(message, &board->list[state], link)
		{
			if (message->lease_end != 0 && message->lease_end < nearest)
			{
				nearest = message->lease_end;
			}
		}
	}
	return nearest;
}

static void
put_leases(const struct puller *puller, int64_t now, json *status)
{
	const struct message_board *board = &puller->board;
	json *leases = put_object(status, "leases");
	int64_t nearest = nearest_end(board);

	put_int(leases, "held", board->held);
	put_int(leases, "bytes", board->held_bytes);
	put_int(leases, "ready", board->count[MESSAGE_READY]);
	put_int(leases, "running", board->count[MESSAGE_RUNNING]);
	put_int(leases, "acking", board->count[MESSAGE_ACKING]);
	put_int(leases, "returning", board->count[MESSAGE_RETURNING]);
	put_int(leases, "extended", puller->lease.extended);
	put_int(leases, "expired", puller->lease.expired);
	put_seconds(leases, "ack_deadline", (double) puller->pull.deadline_ms / 1000);
	if (nearest != CLOCK_NEVER)
	{
		put_seconds(leases, "nearest_end", (double) (nearest - now) / 1000);
	}
}

static void
put_requests(const struct puller *puller, int64_t now, json *status)
{
	const struct metrics *metrics = &puller->metrics;
	json *requests = put_object(status, "pubsub");

	put_int(requests, "pulls_in_flight", puller->pull.in_flight);
	put_int(requests, "pulls_full", metrics->pulls[METRICS_PULL_FULL]);
	put_int(requests, "pulls_empty", metrics->pulls[METRICS_PULL_EMPTY]);
	put_int(requests, "pulls_failed", metrics->pulls[METRICS_PULL_FAILED]);
	put_int(requests, "acked", puller->ack.acked);
	put_int(requests, "acks_lost", puller->ack.lost);
	put_text(requests, "credentials", auth_kind(&puller->auth));
	if (puller->auth.version > 0)
	{
		put_seconds(requests, "token_age", (double) (now - puller->auth.taken_ms) / 1000);
	}
}

static double
average(const struct histogram *histogram)
{
	return histogram->count > 0 ? histogram->sum / (double) histogram->count : 0;
}

static void
put_batches(const struct puller *puller, int64_t now, json *status)
{
	const struct metrics *metrics = &puller->metrics;
	json *batches = put_object(status, "batches");

	put_int(batches, "committed", metrics->committed);
	put_int(batches, "failed", metrics->failed);
	put_int(batches, "unknown", metrics->unknown);
	put_int(batches, "limit", puller->batch_limit);
	put_seconds(batches, "average_size", average(&metrics->batch_size));
	put_seconds(batches, "average_handler", average(&metrics->handler));
	put_seconds(batches, "average_transaction", average(&metrics->transaction));
	put_seconds(batches, "average_age", average(&metrics->age));
	put_int(batches, "contentions", puller->contention.met);
	put_bool(batches, "exclusive", puller->contention.exclusive && now < puller->contention.until);
	put_int(batches, "connects", metrics->connected);
}

static void
put_database(const struct puller *puller, int64_t now, json *status)
{
	const struct look *look = &puller->look;
	json *database = put_object(status, "database");

	put_text(database, "error", look->error);
	if (look->known != NULL)
	{
		put_seconds(database, "age", (double) (now - look->known_ms) / 1000);
		json_object_object_add(database, "known", json_object_get(look->known));
	}
}

void
status_write(const struct puller *puller, int64_t now, struct buffer *out)
{
	json *status = json_object_new_object();
	const char *text;

	put_what(puller, status);
	put_health(puller, now, status);
	put_counts(&puller->metrics, status);
	put_history(puller, status);
	put_troubles(puller, status);
	put_workers(puller, now, status);
	put_leases(puller, now, status);
	put_requests(puller, now, status);
	put_batches(puller, now, status);
	put_database(puller, now, status);
	text = json_object_to_json_string_ext(status,
										  JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	(void) !buffer_append(out, text, strlen(text));
	json_object_put(status);
}
