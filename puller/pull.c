/* SPDX-License-Identifier: PostgreSQL */
#include "pull.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

#include "arrival.h"
#include "clock.h"
#include "decode.h"
#include "fault_point.h"
#include "log.h"
#include "memory.h"
#include "utf8.h"

/* A response that came sooner than this was waiting for us: there is more where it came from. */
#define AT_ONCE_MS 1000
/* The pause after a pull that was to wait for messages and ended at once without any. */
#define EMPTY_PAUSE_MS 200
/* What a person must put right is looked at again this often. */
#define PROBE_MS 30000
/* Somebody may change the subscription's ack deadline, and nothing would tell. */
#define LOOK_EVERY_MS 300000
/* The shortest ack deadline there is: assumed until the subscription was read. */
#define SHORTEST_DEADLINE_MS 10000

/* A request under way. */
struct pull
{
	struct puller *puller;
	int asked; /* messages; 0 for the subscription itself */
};

static struct pull *
new_pull(struct puller *puller, int asked)
{
	struct pull *pull = memory_new(sizeof(*pull));

	pull->puller = puller;
	pull->asked = asked;
	return pull;
}

void
pull_init(struct puller *puller)
{
	puller->pull = (struct pull_state){
		.width = 1,
		.max_messages = PUBSUB_MAX_PULL,
		.average_size = 4096,
		.backoff = {.first_ms = 100, .limit_ms = 60000},
		.deadline_ms = SHORTEST_DEADLINE_MS,
		.failing_since = CLOCK_NEVER,
	};
}

/* ---- the subscription ------------------------------------------------------------------ */

static bool
will_not_pass(enum pubsub_outcome outcome)
{
	return outcome == PUBSUB_UNAUTHENTICATED || outcome == PUBSUB_FORBIDDEN ||
		   outcome == PUBSUB_NOT_FOUND || outcome == PUBSUB_PRECONDITION ||
		   outcome == PUBSUB_INVALID;
}

/* What health.c tells of it; "error" is for people. */
static void
note_trouble(struct puller *puller, const char *error)
{
	struct pull_state *pull = &puller->pull;

	pull->failing_since = pull->failing_since != CLOCK_NEVER ? pull->failing_since : clock_ms();
	snprintf(pull->trouble, sizeof(pull->trouble), "%s", error != NULL ? error : "");
	utf8_trim(pull->trouble);
}

static void
pause_pulls(struct puller *puller, const char *event, const struct pubsub_answer *answer)
{
	struct pull_state *pull = &puller->pull;
	bool person = will_not_pass(answer->outcome);
	int64_t pause = person ? PROBE_MS : backoff_next(&pull->backoff);

	if (answer->retry_after_ms > pause)
	{
		pause = answer->retry_after_ms;
	}
	pull->not_before = clock_ms() + pause;
	note_trouble(puller, answer->error);
	pull->waiting_for_person = person;
	pull->token_refused = answer->outcome == PUBSUB_UNAUTHENTICATED;
	pull->token = puller->auth.version;
	pull->width = 1;
	/* It may be another subscription of that name when it is there again. */
	pull->known = pull->known && !person;
	log_event(person ? LOG_ERROR : LOG_WARNING, event, "subscription", LOG_TEXT,
			  puller->config->subscription, "outcome", LOG_TEXT,
			  pubsub_outcome_name(answer->outcome), "status", LOG_INT, (int64_t) answer->status,
			  "err", LOG_TEXT, answer->error, "retry_in", LOG_SECONDS, pause, "hint", LOG_TEXT,
			  pubsub_remedy(answer->outcome, answer->status), NULL);
	if (person && puller->config->exit_on_permanent)
	{
		puller_exit(puller, 2);
	}
}

static int64_t
read_deadline(const struct pubsub_answer *answer)
{
	struct json_object *document = json_tokener_parse(answer->body);
	struct json_object *seconds;
	int64_t deadline = 0;

	if (document != NULL && json_object_object_get_ex(document, "ackDeadlineSeconds", &seconds))
	{
		deadline = (int64_t) json_object_get_int(seconds) * 1000;
	}
	json_object_put(document);
	return deadline > 0 ? deadline : SHORTEST_DEADLINE_MS;
}

static void
take_deadline(struct puller *puller, int64_t deadline_ms)
{
	struct pull_state *pull = &puller->pull;
	bool news = !pull->known || pull->deadline_ms != deadline_ms;

	pull->known = true;
	pull->failing_since = CLOCK_NEVER;
	pull->deadline_ms = deadline_ms;
	log_event(news ? LOG_INFO : LOG_DEBUG, "subscription", "subscription", LOG_TEXT,
			  puller->config->subscription, "ack_deadline", LOG_SECONDS, deadline_ms, NULL);
}

/* Without the right to read the subscription all goes on, with the shortest deadline assumed. */
static void
take_subscription(void *context, const struct pubsub_answer *answer)
{
	struct puller *puller = ((struct pull *) context)->puller;
	bool news = !puller->pull.known;

	free(context);
	puller->pull.looking = false;
	puller->pull.look_ms = clock_ms() + LOOK_EVERY_MS;
	if (answer->outcome == PUBSUB_OK)
	{
		take_deadline(puller, read_deadline(answer));
	}
	else if (answer->outcome == PUBSUB_FORBIDDEN)
	{
		puller->pull.known = true;
		puller->pull.deadline_ms = SHORTEST_DEADLINE_MS;
		log_event(news ? LOG_INFO : LOG_DEBUG, "subscription_not_readable", "subscription",
				  LOG_TEXT, puller->config->subscription, "err", LOG_TEXT, answer->error, "hint",
				  LOG_TEXT,
				  "an ack deadline of 10 s is assumed; roles/pubsub.viewer lets it be read", NULL);
	}
	else
	{
		pause_pulls(puller, "subscription_failed", answer);
	}
}

/* ---- credit ---------------------------------------------------------------------------- */

static size_t
free_messages(const struct puller *puller)
{
	const struct message_board *board = &puller->board;
	size_t credit = 2 * puller->batch_limit * (size_t) puller->workers;
	size_t used = board->count[MESSAGE_READY] + board->count[MESSAGE_RUNNING] + puller->pull.asked;

	return used < credit ? credit - used : 0;
}

static size_t
free_by_size(const struct puller *puller)
{
	double budget = (double) puller->config->batch_bytes * (puller->workers + 1);
	double used =
		(double) puller->board.held_bytes + (double) puller->pull.asked * puller->pull.average_size;

	return used < budget ? (size_t) ((budget - used) / puller->pull.average_size) : 0;
}

/* How many to ask for now; 0: none. */
static int
credit(const struct puller *puller)
{
	size_t messages = free_messages(puller);
	size_t by_size = free_by_size(puller);
	size_t least = puller->pull.in_flight > 0 ? puller->batch_limit / 2 + 1 : 1;

	/* One message larger than the whole budget must still get through. */
	if (by_size == 0 && puller->board.held == 0 && puller->pull.in_flight == 0)
	{
		by_size = 1;
	}
	if (messages > by_size)
	{
		messages = by_size;
	}
	if (messages > (size_t) puller->pull.max_messages)
	{
		messages = (size_t) puller->pull.max_messages;
	}
	/* Beside another pull a small one is not worth its request. */
	return messages >= least || messages == (size_t) puller->pull.max_messages ? (int) messages : 0;
}

/* ---- answers --------------------------------------------------------------------------- */

static void
log_garbage(struct puller *puller, const struct pubsub_answer *answer, const char *error)
{
	int64_t pause = backoff_next(&puller->pull.backoff);

	puller->pull.not_before = clock_ms() + pause;
	note_trouble(puller, error);
	puller->metrics.pulls[METRICS_PULL_FAILED]++;
	log_event(LOG_ERROR, "pull_garbage", "bytes", LOG_INT, (int64_t) answer->size, "err", LOG_TEXT,
			  error, "retry_in", LOG_SECONDS, pause, "hint", LOG_TEXT,
			  "nothing of it is acknowledged; look for a proxy between here and --endpoint", NULL);
}

static bool
came_at_once(const struct pubsub_answer *answer)
{
	return answer->first_byte_ms - answer->sent_ms < AT_ONCE_MS;
}

static void
adapt_width(struct puller *puller, const struct pubsub_answer *answer, int asked, int got)
{
	struct pull_state *pull = &puller->pull;

	if (got >= asked && came_at_once(answer))
	{
		pull->width += pull->width < (unsigned) puller->config->pulls;
	}
	else if (got == 0)
	{
		pull->width = 1;
		pull->not_before = clock_ms() + (came_at_once(answer) ? EMPTY_PAUSE_MS : 0);
	}
	/* A response that was too large once says nothing about the next messages. */
	if (got >= asked && pull->max_messages < PUBSUB_MAX_PULL)
	{
		pull->max_messages++;
	}
}

static void
take_messages(struct puller *puller, const struct pubsub_answer *answer, int asked)
{
	struct message_list messages = TAILQ_HEAD_INITIALIZER(messages);
	struct decode_error error;
	struct message *message;
	size_t skipped = 0;
	int got = decode_pull_response(answer->body, answer->size, &puller->config->keys, &messages,
								   &skipped, &error);

	if (got < 0)
	{
		log_garbage(puller, answer, error.text);
		return;
	}
	if (skipped > 0)
	{
		log_event(LOG_WARNING, "messages_without_ack_id", "count", LOG_INT, (int64_t) skipped,
				  "hint", LOG_TEXT,
				  "they cannot be acknowledged and come again; look for a proxy between here and "
				  "--endpoint",
				  NULL);
	}
	backoff_reset(&puller->pull.backoff);
	puller->pull.waiting_for_person = false;
	puller->pull.failing_since = CLOCK_NEVER;
	puller->metrics.pulls[got > 0 ? METRICS_PULL_FULL : METRICS_PULL_EMPTY]++;
	(void) FAULT_POINT("pull-decoded");
	adapt_width(puller, answer, asked, got);
	while ((message = TAILQ_FIRST(&messages)) != NULL)
	{
		TAILQ_REMOVE(&messages, message, link);
		arrival_hold(puller, message, answer->first_byte_ms);
	}
}

static void
take_answer(void *context, const struct pubsub_answer *answer)
{
	struct pull *pull = context;
	struct puller *puller = pull->puller;

	puller->pull.in_flight--;
	puller->pull.asked -= (size_t) pull->asked;
	if (answer->outcome == PUBSUB_OK && !FAULT_POINT("pull-answered"))
	{
		take_messages(puller, answer, pull->asked);
	}
	else if (answer->outcome == PUBSUB_TRANSIENT && answer->status == 504 && !came_at_once(answer))
	{
		/* The service's way to say that nothing came while it held the pull. */
		puller->pull.width = 1;
		puller->pull.failing_since = CLOCK_NEVER;
		puller->metrics.pulls[METRICS_PULL_EMPTY]++;
	}
	else
	{
		puller->metrics.pulls[METRICS_PULL_FAILED]++;
		if (answer->outcome == PUBSUB_TOO_LARGE && pull->asked > 1)
		{
			puller->pull.max_messages = pull->asked / 2;
		}
		pause_pulls(puller, "pull_failed", answer);
	}
	free(pull);
}

/* ---- starting -------------------------------------------------------------------------- */

static bool
db_is_there(const struct puller *puller)
{
	for (int i = 0; i < puller->workers; i++)
	{
		if (puller->worker[i].db.state >= DB_IDLE)
		{
			return true;
		}
	}
	return false;
}

static bool
may_pull(struct puller *puller, int64_t now)
{
	struct pull_state *pull = &puller->pull;

	if (!auth_ready(&puller->auth, now) || puller->stopping || !db_is_there(puller))
	{
		return false;
	}
	if (pull->token_refused && pull->token != puller->auth.version)
	{
		pull->token_refused = false;
		pull->not_before = now;
	}
	return now >= pull->not_before;
}

static void
start(struct puller *puller, int asked)
{
	puller->pull.in_flight++;
	puller->pull.started_ms = clock_ms();
	puller->pull.asked += (size_t) asked;
	pubsub_pull(&puller->pubsub, asked, take_answer, new_pull(puller, asked));
}

void
pull_step(struct puller *puller, int64_t now)
{
	int asked;

	if (puller->config->exit_on_permanent && auth_is_hopeless(&puller->auth, now))
	{
		puller_exit(puller, 2);
	}
	if (puller->pull.in_flight >= puller->pull.width || puller->pull.looking ||
		!may_pull(puller, now))
	{
		return;
	}
	if (!puller->pull.known || now >= puller->pull.look_ms)
	{
		puller->pull.looking = true;
		pubsub_get_subscription(&puller->pubsub, take_subscription, new_pull(puller, 0));
		return;
	}
	while (puller->pull.in_flight < puller->pull.width && (asked = credit(puller)) > 0)
	{
		start(puller, asked);
	}
}

int64_t
pull_deadline(const struct puller *puller)
{
	if (puller->stopping || puller->pull.in_flight >= puller->pull.width || puller->pull.looking)
	{
		return CLOCK_NEVER;
	}
	/* With the pause over, only an event that wakes the loop anyhow can give new credit. */
	return puller->pull.not_before > clock_ms() ? puller->pull.not_before : CLOCK_NEVER;
}
