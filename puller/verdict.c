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

static void
log_verdict(const struct puller *puller, enum log_level level, const char *verdict,
			const struct message *message)
{
	if (!log_wants(level))
	{
		return;
	}
	log_event(level, "message", "verdict", LOG_TEXT, verdict, "source", LOG_TEXT,
			  puller->config->source, "key", LOG_TEXT, message->key, "message_id", LOG_TEXT,
			  message->message_id, "ordering_key", LOG_TEXT, message->ordering_key, NULL);
}

/* The verdicts of inbox_process_batch, what becomes of the message, and where it is counted. */
static const struct known_verdict
{
	const char *name;
	enum verdict verdict;
	enum log_level level;
	size_t counter;
} verdicts[] = {
	{"applied", VERDICT_DURABLE, LOG_DEBUG, offsetof(struct counters, applied)},
	{"duplicate", VERDICT_DURABLE, LOG_DEBUG, offsetof(struct counters, duplicate)},
	{"conflict", VERDICT_DURABLE, LOG_WARNING, offsetof(struct counters, conflict)},
	{"parked", VERDICT_DURABLE, LOG_WARNING, offsetof(struct counters, parked)},
	{"expired", VERDICT_DURABLE, LOG_WARNING, offsetof(struct counters, expired)},
	{"later", VERDICT_LATER, LOG_DEBUG, offsetof(struct counters, later)},
};

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
	++*(uint64_t *) ((char *) &puller->counters + known->counter);
	log_verdict(puller, known->level, known->name, message);
}

enum verdict
verdict_of(struct puller *puller, const struct message *message, const PGresult *rows, size_t place)
{
	const char *name = verdict_at(rows, place);
	const struct known_verdict *known = find_verdict(name);

	if (known != NULL)
	{
		count_verdict(puller, known, message);
		if (puller->halted && known->counter == offsetof(struct counters, applied))
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
	puller->counters.dead += dead;
	puller->counters.retrying += !dead;
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
