/* SPDX-License-Identifier: PostgreSQL */
#include "verdict.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "failure.h"
#include "log.h"

static int32_t
read_int(const PGresult *rows, int row, int column)
{
	uint32_t wire;

	memcpy(&wire, PQgetvalue(rows, row, column), sizeof(wire));
	return (int32_t) ntohl(wire);
}

static double
read_double(const PGresult *rows, int row, int column)
{
	uint64_t wire;
	double value;

	memcpy(&wire, PQgetvalue(rows, row, column), sizeof(wire));
	wire = be64toh(wire);
	memcpy(&value, &wire, sizeof(value));
	return value;
}

/* The verdicts of inbox_process_batch, what becomes of the message, and where it is counted. */
static const struct known_verdict
{
	const char *name;
	enum verdict verdict;
	enum metrics_verdict counter;
	const char *error; /* NULL: nothing is wrong with it */
	const char *sqlstate;
	const char *hint;
} verdicts[] = {
	{"applied", VERDICT_DURABLE, METRICS_APPLIED, NULL, NULL, NULL},
	{"duplicate", VERDICT_DURABLE, METRICS_DUPLICATE, NULL, NULL, NULL},
	{"later", VERDICT_LATER, METRICS_LATER, NULL, NULL, NULL},
	{"conflict", VERDICT_DURABLE, METRICS_CONFLICT, "the key was claimed with another payload",
	 "IX001",
	 "it is a row of inbox_failure: apply it with inbox_retry() and another key, or end it with "
	 "inbox_discard()"},
	{"parked", VERDICT_DURABLE, METRICS_PARKED,
	 "it waits for an earlier message of its ordering key", "IX004",
	 "it is a row of inbox_failure, and follows when the dead one there is retried or discarded"},
	{"expired", VERDICT_DURABLE, METRICS_EXPIRED,
	 "it was published before the time from which keys are kept", NULL,
	 "it is a row of inbox_failure: find out whether it was applied, and end it with "
	 "inbox_discard()"},
};

static void
log_verdict(const struct puller *puller, const struct known_verdict *known,
			const struct message *message)
{
	struct failure failure = {.error = (char *) known->error,
							  .sqlstate = (char *) known->sqlstate,
							  .reason = known->name};

	if (known->error != NULL)
	{
		failure_log(
			puller, message, &failure, LOG_WARNING, "message",
			&(struct failure_outcome){.verdict = known->name, .pause_ms = -1, .hint = known->hint});
		return;
	}
	log_event(LOG_DEBUG, "message", "verdict", LOG_TEXT, known->name, "source", LOG_TEXT,
			  puller->config->source, "key", LOG_TEXT, message->key, "message_id", LOG_TEXT,
			  message->message_id, "ordering_key", LOG_TEXT, message->ordering_key, NULL);
}

/* Rows come in order, one a message; anything else is a verdict for nobody. */
static const char *
verdict_at(const PGresult *rows, size_t place)
{
	int row = (int) place;

	if (row >= PQntuples(rows) || PQnfields(rows) != 2 || PQgetisnull(rows, row, 0) ||
		PQgetlength(rows, row, 0) != 4 || read_int(rows, row, 0) != row + 1)
	{
		return NULL;
	}
	return PQgetvalue(rows, row, 1);
}

static const struct known_verdict *
find_verdict(const char *name)
{
	for (size_t i = 0; name != NULL && i < sizeof(verdicts) / sizeof(verdicts[0]); i++)
	{
		if (strcmp(name, verdicts[i].name) == 0)
		{
			return &verdicts[i];
		}
	}
	return NULL;
}

static void
count_verdict(struct puller *puller, const struct known_verdict *known,
			  const struct message *message)
{
	puller->metrics.messages[known->counter][message->label]++;
	if (known->counter == METRICS_DUPLICATE)
	{
		metrics_duplicate(&puller->metrics, message->key);
	}
	log_verdict(puller, known, message);
}

enum verdict
verdict_of(struct puller *puller, const struct message *message, const PGresult *rows, size_t place)
{
	const char *name = verdict_at(rows, place);
	const struct known_verdict *known = find_verdict(name);

	if (known != NULL)
	{
		count_verdict(puller, known, message);
		if (puller->halted && known->counter == METRICS_APPLIED)
		{
			puller->halted = false;
			log_event(LOG_INFO, "source_resumed", "source", LOG_TEXT, puller->config->source, NULL);
		}
		return known->verdict;
	}
	log_event(
		LOG_ERROR, "verdict_missing", "message_id", LOG_TEXT, message->message_id, "verdict",
		LOG_TEXT, name, "hint", LOG_TEXT,
		"the extension gave no verdict this version knows, so the message is not acknowledged; "
		"install the same version of inbox-puller and of the extension",
		NULL);
	return VERDICT_NONE;
}

static const char *
hint_of(const char *verdict)
{
	if (strcmp(verdict, "dead") == 0)
	{
		return "it is a row of inbox_failure; see inbox_retry() and inbox_discard()";
	}
	return strcmp(verdict, "halted") == 0
			   ? "message after message failed: look at the handler; one is tried now and then"
			   : NULL;
}

/* The note that a suspect is tried is no failure yet. */
static void
count_failure(struct puller *puller, const struct message *message, const struct failure *failure,
			  bool halted, bool dead)
{
	struct metrics *metrics = &puller->metrics;
	enum metrics_verdict verdict = dead ? METRICS_DEAD : halted ? METRICS_HALTED : METRICS_RETRYING;

	if (!dead && failure->sqlstate != NULL && strcmp(failure->sqlstate, "IX006") == 0)
	{
		return;
	}
	metrics->messages[verdict][message->label]++;
	metrics_failure(metrics, failure->sqlstate);
	if (dead)
	{
		metrics_dead(metrics, message->key);
	}
}

struct verdict_of_failure
verdict_of_failure(struct puller *puller, const struct message *message,
				   const struct failure *failure, const PGresult *rows)
{
	struct verdict_of_failure outcome = {.durable = false, .pause_ms = VERDICT_LATER_PAUSE_MS};
	const char *name = PQntuples(rows) == 1 ? PQgetvalue(rows, 0, 0) : "";
	int attempts = PQntuples(rows) == 1 && PQgetlength(rows, 0, 1) == 4 ? read_int(rows, 0, 1) : 0;
	bool dead = strcmp(name, "dead") == 0;

	if (PQntuples(rows) == 1 && PQgetlength(rows, 0, 2) == 8)
	{
		outcome.pause_ms = (int64_t) (read_double(rows, 0, 2) * 1000);
	}
	if (strcmp(name, "duplicate") == 0 || strcmp(name, "conflict") == 0)
	{
		outcome.durable = true;
		count_verdict(puller, find_verdict(name), message);
		return outcome;
	}
	outcome.durable = dead;
	outcome.halted = strcmp(name, "halted") == 0;
	count_failure(puller, message, failure, outcome.halted, dead);
	failure_log(puller, message, failure, dead ? LOG_ERROR : LOG_WARNING,
				dead			   ? "dead_letter"
				: message->suspect ? "suspect_tried"
								   : "message_failed",
				&(struct failure_outcome){.verdict = name,
										  .attempt = attempts,
										  .pause_ms = dead ? -1 : outcome.pause_ms,
										  .hint = hint_of(name)});
	return outcome;
}
