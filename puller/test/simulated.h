/* SPDX-License-Identifier: PostgreSQL */
/*
 * Pullers in a simulated world: the real loop's parts from pull to acknowledgement, with a clock,
 * a Pub/Sub service and a database of the test. Everything happens in one thread and in an order
 * that a seed decides, so a failure can be had again.
 *
 * The linker puts the functions with __wrap_ in the place of the real ones (puller/Makefile).
 */
#ifndef INBOX_TEST_SIMULATED_H
#define INBOX_TEST_SIMULATED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "clock.h"
#include "flow.h"
#include "load.h"
#include "memory.h"
#include "rows.h"
#include "stop.h"

#define PULLERS_MAX 3
#define CALLS_MAX 256

/* ---- the clock ------------------------------------------------------------------------------ */

static int64_t world_ms;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void) clock;
	*time = (struct timespec){.tv_sec = world_ms / 1000, .tv_nsec = world_ms % 1000 * 1000000};
	return 0;
}

/* ---- the trace: a hash of all that happened, in its order ----------------------------------- */

static uint64_t trace;
static int changes_told; /* events "database_changed" */

static void
trace_text(const char *text)
{
	for (; *text != '\0'; text++)
	{
		trace = (trace ^ (unsigned char) *text) * UINT64_C(0x100000001B3);
	}
}

static void
trace_number(int64_t number)
{
	trace = (trace ^ (uint64_t) number) * UINT64_C(0x9E3779B97F4A7C15);
	trace ^= trace >> 32;
}

/* ---- the log: silent ------------------------------------------------------------------------ */

void __wrap_log_event(enum log_level level, const char *event, ...);

void
__wrap_log_event(enum log_level level, const char *event, ...)
{
	trace_number(world_ms);
	trace_text(event);
	changes_told += strcmp(event, "database_changed") == 0;
	if (getenv("TRACE") != NULL)
	{
		fprintf(stderr, "%lld %d %s\n", (long long) world_ms, (int) level, event);
	}
}

/* ---- chance --------------------------------------------------------------------------------- */

static uint64_t chance_state;

/* From 0 to limit - 1. */
static inline int
chance(int limit)
{
	uint64_t mixed = chance_state += UINT64_C(0x9E3779B97F4A7C15);

	mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
	return (int) ((mixed ^ (mixed >> 31)) % (uint64_t) limit);
}

static inline bool
happens(int percent)
{
	return chance(100) < percent;
}

/* ---- the puller at work --------------------------------------------------------------------- */

/* While it is, an allocation may be made to fail (exhaust.h); the test's own do not. */
static bool puller_works;

#define IN_PULLER(call) (puller_works = true, (call), puller_works = false)

/* ---- requests to Pub/Sub -------------------------------------------------------------------- */

enum call_kind
{
	CALL_PULL,
	CALL_ACK,
	CALL_MODACK,
	CALL_GET
};

/* A request that was sent and not answered yet. */
struct call
{
	enum call_kind kind;
	struct puller *puller;
	int timeline; /* that the puller had seen when it was sent */
	int number;	  /* maxMessages, or seconds */
	size_t count;
	char **ids;
	int64_t sent_ms;
	int64_t due_ms; /* when it is answered */
	pubsub_callback callback;
	void *context;
};

static struct call calls[CALLS_MAX];
static size_t call_count;
static struct puller pullers[PULLERS_MAX];
static struct loaded configs[PULLERS_MAX];
static uint64_t sent; /* requests and transactions so far */

/* When a new request is to be answered, and what its puller knows; the simulation's own. */
static int64_t call_due(const struct call *call);
static int timeline_seen(const struct puller *puller);

static void
send_call(struct pubsub *pubsub, struct call call, char *const *ids)
{
	assert_true(call_count < CALLS_MAX);
	sent++;
	call.puller = (struct puller *) ((char *) pubsub - offsetof(struct puller, pubsub));
	call.ids = memory_new(call.count * sizeof(char *));
	for (size_t i = 0; i < call.count; i++)
	{
		call.ids[i] = memory_copy_text(ids[i]);
		trace_text(ids[i]);
	}
	trace_number((int) call.kind);
	call.timeline = timeline_seen(call.puller);
	call.sent_ms = world_ms;
	call.due_ms = call_due(&call);
	calls[call_count++] = call;
}

void __wrap_pubsub_pull(struct pubsub *pubsub, int max_messages, pubsub_callback callback,
						void *context);
void __wrap_pubsub_acknowledge(struct pubsub *pubsub, char *const *ack_ids, size_t count,
							   pubsub_callback callback, void *context);
void __wrap_pubsub_modify_ack_deadline(struct pubsub *pubsub, char *const *ack_ids, size_t count,
									   int seconds, pubsub_callback callback, void *context);
void __wrap_pubsub_get_subscription(struct pubsub *pubsub, pubsub_callback callback, void *context);

void
__wrap_pubsub_pull(struct pubsub *pubsub, int max_messages, pubsub_callback callback, void *context)
{
	send_call(
		pubsub,
		(struct call){
			.kind = CALL_PULL, .number = max_messages, .callback = callback, .context = context},
		NULL);
}

void
__wrap_pubsub_acknowledge(struct pubsub *pubsub, char *const *ack_ids, size_t count,
						  pubsub_callback callback, void *context)
{
	send_call(
		pubsub,
		(struct call){.kind = CALL_ACK, .count = count, .callback = callback, .context = context},
		ack_ids);
}

void
__wrap_pubsub_modify_ack_deadline(struct pubsub *pubsub, char *const *ack_ids, size_t count,
								  int seconds, pubsub_callback callback, void *context)
{
	send_call(pubsub,
			  (struct call){.kind = CALL_MODACK,
							.number = seconds,
							.count = count,
							.callback = callback,
							.context = context},
			  ack_ids);
}

void
__wrap_pubsub_get_subscription(struct pubsub *pubsub, pubsub_callback callback, void *context)
{
	send_call(pubsub, (struct call){.kind = CALL_GET, .callback = callback, .context = context},
			  NULL);
}

/* Takes a request off those that wait; its ids are to be freed with free_call(). */
static inline struct call
take_call(size_t place)
{
	struct call call = calls[place];

	memmove(&calls[place], &calls[place + 1], (--call_count - place) * sizeof(call));
	return call;
}

static inline void
free_call(struct call *call)
{
	for (size_t i = 0; i < call->count; i++)
	{
		free(call->ids[i]);
	}
	free(call->ids);
}

/* Takes the failures over: a JSON object of reasons by ack id, or NULL. */
static inline void
answer_call(struct call *call, enum pubsub_outcome outcome, const char *body,
			struct json_object *failures)
{
	struct pubsub_answer answer = {.outcome = outcome,
								   .status = outcome == PUBSUB_OK ? 200 : 503,
								   .error = outcome == PUBSUB_OK ? NULL : "simulated",
								   .body = body,
								   .size = strlen(body),
								   .sent_ms = call->sent_ms,
								   .first_byte_ms = world_ms,
								   .failures = failures};

	IN_PULLER(call->callback(call->context, &answer));
	json_object_put(failures);
	free_call(call);
}

/* ---- connections ---------------------------------------------------------------------------- */

void __wrap_db_connect(struct db *db);
void __wrap_db_run(struct db *db, const struct db_statement *statement);
void __wrap_db_close(struct db *db, const char *reason);
bool __wrap_db_is_broken(const struct db *db);

/* When a connection is made, or a transaction answered; the simulation's own. */
static void connect_begins(struct worker *worker);
static void transaction_begins(struct worker *worker);

void
__wrap_db_connect(struct db *db)
{
	db->state = DB_CONNECTING;
	connect_begins(db->context);
}

void
__wrap_db_run(struct db *db, const struct db_statement *statement)
{
	assert_int_equal(db->state, DB_IDLE);
	sent++;
	trace_number((int) statement->lock);
	db->state = DB_BUSY;
	db->lock = statement->lock;
	transaction_begins(db->context);
}

void
__wrap_db_close(struct db *db, const char *reason)
{
	(void) reason;
	db->state = DB_DOWN;
	db->retry_ms = world_ms + 200;
}

static bool broken_connections;

bool
__wrap_db_is_broken(const struct db *db)
{
	return broken_connections && db->state == DB_BUSY;
}

static inline void
connected(struct worker *worker, const char *timeline)
{
	static char schema[] = "s";
	static char system_id[] = "1";

	worker->db.state = DB_IDLE;
	worker->db.facts = (struct db_facts){.schema = schema,
										 .system_id = system_id,
										 .timeline = (char *) (uintptr_t) timeline,
										 .message_type = 16384,
										 .message_array_type = 16385};
	IN_PULLER(worker->db.events->ready(worker, &worker->db));
}

static inline void
not_connected(struct worker *worker)
{
	worker->db.state = DB_DOWN;
	worker->db.retry_ms = world_ms + 500;
	IN_PULLER(worker->db.events->down(worker, &worker->db, DB_REFUSED_FOR_NOW));
}

static inline void
answer_transaction(struct worker *worker, struct db_answer answer)
{
	worker->db.state = DB_IDLE;
	IN_PULLER(worker->db.events->answered(worker, &worker->db, &answer));
}

/* The connection is lost with the transaction in it. */
static inline void
lose_connection(struct worker *worker)
{
	struct db_answer answer = {.outcome = DB_UNKNOWN, .message = "lost"};

	worker->db.state = DB_DOWN;
	worker->db.retry_ms = world_ms + 200;
	IN_PULLER(worker->db.events->answered(worker, &worker->db, &answer));
}

/* ---- pullers -------------------------------------------------------------------------------- */

static inline void
start_puller(int place, const char *workers, const char *batch_size)
{
	struct loaded *loaded = &configs[place];

	LOAD_GOOD(loaded, "--workers", workers, "--batch-size", batch_size);
	assert_string_equal(loaded->err, "");
	puller_init(&pullers[place], &loaded->config);
}

static inline void
drop_calls(const struct puller *puller)
{
	for (size_t i = call_count; i-- > 0;)
	{
		if (calls[i].puller == puller)
		{
			struct call call = take_call(i);

			free(call.context);
			free_call(&call);
		}
	}
}

/* At whatever it is. */
static inline void
end_puller(int place)
{
	struct puller *puller = &pullers[place];

	drop_calls(puller);
	for (int i = 0; i < puller->workers; i++)
	{
		puller->worker[i].db.facts = (struct db_facts){0};
	}
	puller_free(puller);
	unload(&configs[place]);
}

/*
 * A turn without an event. What the second step still sends would have waited for an event, and a
 * deadline that has passed lets the loop spin.
 */
static inline void
turn(struct puller *puller)
{
	uint64_t before;

	IN_PULLER(flow_step(puller, world_ms));
	before = sent;
	IN_PULLER(flow_step(puller, world_ms));
	assert_int_equal(sent, before);
	if (!puller->done)
	{
		assert_true(flow_deadline(puller, world_ms) > world_ms);
	}
}

#endif
