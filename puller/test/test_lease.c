/* SPDX-License-Identifier: PostgreSQL */
/* Leases, with a clock and answers of the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "lease.h"
#include "log.h"
#include "memory.h"

#define CALLS_MAX 8
#define DEADLINE_MS 30000

/* A request that was sent and not answered yet. */
struct call
{
	int seconds;
	size_t bytes;
	size_t count;
	char ids[256]; /* the first of them, as "a b" */
	int64_t sent_ms;
	pubsub_callback callback;
	void *context;
};

static struct call calls[CALLS_MAX];
static size_t call_count;
static struct message_board board;
static struct lease lease;
static struct config config;
static int64_t now_ms;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
void __wrap_pubsub_modify_ack_deadline(struct pubsub *pubsub, char *const *ack_ids, size_t count,
									   int seconds, pubsub_callback callback, void *context);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void) clock;
	*time = (struct timespec){.tv_sec = now_ms / 1000, .tv_nsec = now_ms % 1000 * 1000000};
	return 0;
}

void
__wrap_pubsub_modify_ack_deadline(struct pubsub *pubsub, char *const *ack_ids, size_t count,
								  int seconds, pubsub_callback callback, void *context)
{
	struct call *call = &calls[call_count++];
	size_t at = 0;

	(void) pubsub;
	assert_true(call_count <= CALLS_MAX);
	assert_in_range(count, 1, PUBSUB_MAX_IDS);
	*call = (struct call){.seconds = seconds,
						  .count = count,
						  .sent_ms = now_ms,
						  .callback = callback,
						  .context = context};
	for (size_t i = 0; i < count; i++)
	{
		call->bytes += pubsub_id_size(ack_ids[i]);
	}
	for (size_t i = 0; i < count && at < sizeof(call->ids) / 2; i++)
	{
		at += (size_t) snprintf(call->ids + at, sizeof(call->ids) - at, "%s%s", i > 0 ? " " : "",
								ack_ids[i]);
	}
}

/* Answers the oldest request. "failures" is a JSON object as text, or NULL. */
static void
answer(enum pubsub_outcome outcome, const char *failures)
{
	struct call call = calls[0];
	struct pubsub_answer given = {
		.outcome = outcome, .error = outcome ? "refused" : NULL, .sent_ms = call.sent_ms};

	assert_true(call_count > 0);
	memmove(&calls[0], &calls[1], --call_count * sizeof(calls[0]));
	given.failures = failures != NULL ? json_tokener_parse(failures) : NULL;
	call.callback(call.context, &given);
	json_object_put(given.failures);
}

static struct message *
hold(const char *ack_id, const char *ordering_key)
{
	struct message *message = message_new();

	message->ack_id = memory_copy_text(ack_id);
	message->message_id = memory_copy_text(ack_id);
	message->ordering_key = memory_copy_text(ordering_key);
	message_hold(&board, message);
	lease_begin(&lease, message, now_ms, DEADLINE_MS);
	return message;
}

/* Goes on to when something is due. */
static void
wait_for_due(void)
{
	assert_true(lease_deadline(&lease) > now_ms && lease_deadline(&lease) < CLOCK_NEVER);
	now_ms = lease_deadline(&lease);
	lease_step(&lease, now_ms);
}

static int
set_up(void **state)
{
	(void) state;
	log_configure(LOG_JSON, LOG_ERROR);
	now_ms = 1000;
	call_count = 0;
	config = (struct config){.max_lease = 3600000};
	message_board_init(&board);
	lease_init(&lease, &board, NULL, &config);
	return 0;
}

static int
tear_down(void **state)
{
	(void) state;
	while (call_count > 0)
	{
		answer(PUBSUB_OK, NULL);
	}
	for (int i = 0; i < MESSAGE_STATES; i++)
	{
		while (!TAILQ_EMPTY(&board.list[i]))
		{
			message_forget(&board, TAILQ_FIRST(&board.list[i]));
		}
	}
	return 0;
}

/* ---- extensions ----------------------------------------------------------------------------- */

static void
first_extension_comes_after_a_third(void **state)
{
	struct message *message = hold("a", NULL);

	(void) state;
	wait_for_due();
	assert_int_equal(now_ms, 1000 + DEADLINE_MS / 3);
	assert_string_equal(calls[0].ids, "a");
	assert_int_equal(calls[0].seconds, 60);
	now_ms += 500;
	answer(PUBSUB_OK, NULL);
	/* From when it was sent, for nobody knows when it arrived. */
	assert_int_equal(message->lease_end, 1000 + DEADLINE_MS / 3 + 60000 - 1000);
	wait_for_due();
	assert_int_equal(now_ms, 1000 + DEADLINE_MS / 3 + 30000);
}

static void
whatever_is_held_is_extended(void **state)
{
	struct message *running;
	struct message *acking;

	(void) state;
	hold("ready", NULL);
	running = hold("running", NULL);
	acking = hold("acking", NULL);
	message_run(&board, running, &board);
	message_run(&board, acking, &board);
	message_set_state(&board, acking, MESSAGE_COMMITTED);
	message_set_state(&board, acking, MESSAGE_ACKING);
	wait_for_due();
	assert_int_equal(calls[0].count, 3);
}

static void
lost_request_does_not_cost_the_lease(void **state)
{
	(void) state;
	hold("a", NULL);
	for (int i = 0; i < 5; i++)
	{
		wait_for_due();
		assert_int_equal(call_count, 1);
		answer(PUBSUB_TRANSIENT, NULL);
	}
	assert_int_equal(board.held, 1);
	while (board.held > 0)
	{
		wait_for_due();
		while (call_count > 0)
		{
			answer(PUBSUB_TRANSIENT, NULL);
		}
	}
	assert_int_equal(now_ms, 1000 + DEADLINE_MS - 1000);
}

/* Its answer finds nothing of it any more. */
static void
forgotten_message_is_not_looked_for(void **state)
{
	struct message *message = hold("a", NULL);

	(void) state;
	wait_for_due();
	message_forget(&board, message);
	answer(PUBSUB_OK, NULL);
	assert_int_equal(lease.extended, 0);
}

static void
lost_lease_takes_what_follows_along(void **state)
{
	struct message *before = hold("before", "key");

	(void) state;
	hold("lost", "key");
	hold("behind", "key");
	hold("other", NULL);
	wait_for_due();
	answer(PUBSUB_INVALID, "{\"lost\": \"PERMANENT_FAILURE_INVALID_ACK_ID\"}");
	assert_int_equal(board.held, 3);
	assert_true(before->lease_end > now_ms);
	wait_for_due();
	assert_int_equal(board.held, 2);
	assert_string_equal(calls[0].ids, "before other");
}

/* The service refuses a request and names no id. */
static void
bad_id_costs_no_other_lease(void **state)
{
	int requests = 0;

	(void) state;
	for (int i = 0; i < 9; i++)
	{
		hold(i == 5 ? "bad" : "good", NULL);
	}
	wait_for_due();
	while (call_count > 0)
	{
		assert_true(requests++ < 12);
		answer(strstr(calls[0].ids, "bad") != NULL ? PUBSUB_INVALID : PUBSUB_OK, NULL);
		lease_step(&lease, now_ms);
	}
	assert_int_equal(board.held, 8);
	assert_int_equal(lease.extended, 8);
	assert_true(lease_deadline(&lease) > now_ms);
}

static void
many_are_sent_in_parts(void **state)
{
	(void) state;
	for (int i = 0; i < PUBSUB_MAX_IDS + 1; i++)
	{
		hold("a", NULL);
	}
	wait_for_due();
	assert_int_equal(call_count, 2);
	assert_int_equal(calls[0].count, PUBSUB_MAX_IDS);
	assert_int_equal(calls[1].count, 1);
}

/* ---- returns -------------------------------------------------------------------------------- */

static void
long_ids_take_more_requests(void **state)
{
	char name[601];

	(void) state;
	for (int i = 0; i < PUBSUB_MAX_IDS; i++)
	{
		snprintf(name, sizeof(name), "%0600d", i);
		hold(name, NULL);
	}
	wait_for_due();
	assert_int_equal(call_count, 2);
	assert_int_equal(calls[0].count + calls[1].count, PUBSUB_MAX_IDS);
	assert_in_range(calls[0].bytes, PUBSUB_MAX_ID_BYTES - 603, PUBSUB_MAX_ID_BYTES);
	assert_in_range(calls[1].bytes, 1, PUBSUB_MAX_ID_BYTES);
}

static void
each_pause_has_a_request(void **state)
{
	struct message *messages[4];
	static const int64_t pauses[] = {1500, 0, 2000, 3600000};

	(void) state;
	for (int i = 0; i < 4; i++)
	{
		char name[2] = {(char) ('a' + i), '\0'};

		messages[i] = hold(name, NULL);
	}
	for (int i = 0; i < 4; i++)
	{
		lease_return(&lease, messages[i], pauses[i]);
	}
	assert_false(lease_is_idle(&lease));
	assert_true(lease_deadline(&lease) <= now_ms);
	lease_step(&lease, now_ms);
	assert_int_equal(call_count, 3);
	assert_string_equal(calls[0].ids, "a c");
	assert_int_equal(calls[0].seconds, 2);
	assert_int_equal(calls[1].seconds, 0);
	assert_int_equal(calls[2].seconds, 600);
}

/* Whatever the answer: the message comes again by itself. */
static void
returned_message_is_forgotten_with_the_answer(void **state)
{
	(void) state;
	lease_return(&lease, hold("a", NULL), 1000);
	lease_step(&lease, now_ms);
	assert_int_equal(board.held, 1);
	answer(PUBSUB_TRANSIENT, NULL);
	assert_int_equal(board.held, 0);
	assert_true(lease_is_idle(&lease));
}

static void
returned_message_is_not_extended(void **state)
{
	(void) state;
	lease_return(&lease, hold("a", NULL), 1000);
	lease_step(&lease, now_ms);
	now_ms += DEADLINE_MS / 3;
	lease_step(&lease, now_ms);
	assert_int_equal(call_count, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first_extension_comes_after_a_third, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whatever_is_held_is_extended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost_request_does_not_cost_the_lease, set_up, tear_down),
		cmocka_unit_test_setup_teardown(forgotten_message_is_not_looked_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost_lease_takes_what_follows_along, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bad_id_costs_no_other_lease, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_are_sent_in_parts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(long_ids_take_more_requests, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_pause_has_a_request, set_up, tear_down),
		cmocka_unit_test_setup_teardown(returned_message_is_forgotten_with_the_answer, set_up,
										tear_down),
		cmocka_unit_test_setup_teardown(returned_message_is_not_extended, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
