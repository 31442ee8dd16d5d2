/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ack.h"
#include "clock.h"
#include "log.h"
#include "memory.h"

#define CALLS_MAX 8
#define LONG_LEASE_MS 600000

/* A request that was sent and not answered yet. */
struct call
{
	size_t count;
	size_t bytes;
	char ids[PUBSUB_MAX_IDS][16];
	pubsub_callback callback;
	void *context;
};

static struct call calls[CALLS_MAX];
static size_t call_count;
static struct message_board board;
static struct ack ack;

void __wrap_pubsub_acknowledge(struct pubsub *pubsub, char *const *ack_ids, size_t count,
							   pubsub_callback callback, void *context);

void
__wrap_pubsub_acknowledge(struct pubsub *pubsub, char *const *ack_ids, size_t count,
						  pubsub_callback callback, void *context)
{
	struct call *call = &calls[call_count++];

	(void) pubsub;
	assert_true(call_count <= CALLS_MAX);
	assert_in_range(count, 1, PUBSUB_MAX_IDS);
	call->count = count;
	call->bytes = 0;
	for (size_t i = 0; i < count; i++)
	{
		snprintf(call->ids[i], sizeof(call->ids[i]), "%s", ack_ids[i]);
		call->bytes += pubsub_id_size(ack_ids[i]);
	}
	call->callback = callback;
	call->context = context;
}

/* Answers the oldest request. "failures" is a JSON object as text, or NULL. */
static void
answer(enum pubsub_outcome outcome, const char *failures)
{
	struct pubsub_answer given = {.outcome = outcome, .error = outcome ? "refused" : NULL};
	struct call call = calls[0];

	assert_true(call_count > 0);
	memmove(&calls[0], &calls[1], --call_count * sizeof(calls[0]));
	given.failures = failures != NULL ? json_tokener_parse(failures) : NULL;
	call.callback(call.context, &given);
	json_object_put(given.failures);
}

static void
add(const char *ack_id, const char *ordering_key)
{
	struct message *message = message_new();

	message->ack_id = memory_copy_text(ack_id);
	message->message_id = memory_copy_text(ack_id);
	message->ordering_key = memory_copy_text(ordering_key);
	message->lease_end = clock_ms() + LONG_LEASE_MS;
	message_hold(&board, message);
	message_run(&board, message, &board);
	message_set_state(&board, message, MESSAGE_COMMITTED);
	ack_add(&ack, message);
}

static void
add_many(size_t count, const char *ordering_key)
{
	for (size_t i = 0; i < count; i++)
	{
		char name[16];

		snprintf(name, sizeof(name), "m%zu", i);
		add(name, ordering_key);
	}
}

static void
step(void)
{
	ack_step(&ack, clock_ms());
}

/* After a failure the next attempt is paused for. */
static void
step_later(void)
{
	ack_step(&ack, clock_ms() + LONG_LEASE_MS);
}

static bool
holds(const struct call *call, const char *ack_id)
{
	for (size_t i = 0; i < call->count; i++)
	{
		if (strcmp(call->ids[i], ack_id) == 0)
		{
			return true;
		}
	}
	return false;
}

static int
set_up(void **state)
{
	(void) state;
	log_configure(LOG_JSON, LOG_ERROR);
	call_count = 0;
	message_board_init(&board);
	ack_init(&ack, &board, NULL);
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
	assert_int_equal(board.held, ack.waiting);
	ack_drop(&ack);
	assert_int_equal(board.held, 0);
	return 0;
}

static void
next_request_grows_while_one_is_under_way(void **state)
{
	(void) state;
	add("a", NULL);
	step();
	add("b", NULL);
	add("c", NULL);
	step();
	assert_int_equal(call_count, 1);
	assert_true(ack_deadline(&ack) == CLOCK_NEVER);
	answer(PUBSUB_OK, NULL);
	assert_true(ack_deadline(&ack) <= clock_ms());
	step();
	assert_int_equal(calls[0].count, 2);
	answer(PUBSUB_OK, NULL);
	assert_int_equal(ack.acked, 3);
	assert_true(ack_is_idle(&ack));
}

static void
failed_request_is_sent_again_after_a_pause(void **state)
{
	(void) state;
	add("a", NULL);
	step();
	answer(PUBSUB_TRANSIENT, NULL);
	step();
	assert_int_equal(call_count, 0);
	assert_true(ack_deadline(&ack) > clock_ms());
	step_later();
	assert_true(holds(&calls[0], "a"));
}

static void
lease_that_ended_is_given_up(void **state)
{
	(void) state;
	add("a", NULL);
	step();
	TAILQ_FIRST(&board.list[MESSAGE_ACKING])->lease_end = clock_ms() - 1;
	answer(PUBSUB_TRANSIENT, NULL);
	assert_int_equal(ack.lost, 1);
	assert_true(ack_is_idle(&ack));
}

static void
add_long(size_t count, size_t size)
{
	char *name = memory_new(size + 1);

	for (size_t i = 0; i < count; i++)
	{
		snprintf(name, size + 1, "%0*zu", (int) size, i);
		add(name, NULL);
	}
	free(name);
}

/* The service refuses a request that is too large as a whole. */
static void
long_ids_take_more_requests(void **state)
{
	(void) state;
	add_long(PUBSUB_MAX_IDS, 600);
	step();
	assert_int_equal(calls[0].count, PUBSUB_MAX_ID_BYTES / 603);
	assert_in_range(calls[0].bytes, PUBSUB_MAX_ID_BYTES - 603, PUBSUB_MAX_ID_BYTES);
	answer(PUBSUB_OK, NULL);
	step();
	assert_int_equal(calls[0].count, PUBSUB_MAX_IDS - PUBSUB_MAX_ID_BYTES / 603);
	answer(PUBSUB_OK, NULL);
	assert_int_equal(ack.acked, PUBSUB_MAX_IDS);
	/* One that is too long for any goes alone, for the service to judge. */
	add_long(2, PUBSUB_MAX_ID_BYTES);
	step();
	assert_int_equal(calls[0].count, 1);
}

/* With one request of 1000 under way the next 1000 may go, but not of ordering keys. */
static void
ordered_ones_wait_for_the_one_before_and_the_loop_sleeps(void **state)
{
	(void) state;
	add_many(2 * PUBSUB_MAX_IDS, "key");
	step();
	assert_int_equal(call_count, 1);
	assert_int_equal(ack.waiting, PUBSUB_MAX_IDS);
	assert_true(ack_deadline(&ack) == CLOCK_NEVER);
	answer(PUBSUB_OK, NULL);
	step();
	assert_int_equal(call_count, 1);
}

static void
others_pass_ordered_ones(void **state)
{
	(void) state;
	add("first", "key");
	step();
	add("second", "key");
	add_many(PUBSUB_MAX_IDS, NULL);
	step();
	assert_int_equal(call_count, 2);
	assert_false(holds(&calls[1], "second"));
}

static void
ordered_ones_keep_their_order_when_sent_again(void **state)
{
	(void) state;
	add("one", "key");
	add("two", "key");
	step();
	add("three", "key");
	answer(PUBSUB_INVALID, NULL);
	step();
	assert_int_equal(calls[0].count, 1);
	assert_true(holds(&calls[0], "one"));
	answer(PUBSUB_OK, NULL);
	step();
	assert_true(holds(&calls[0], "two"));
	assert_false(holds(&calls[0], "three"));
}

/* The service names no id, and new messages come all the time. */
static void
bad_id_is_found_among_steady_traffic(void **state)
{
	int requests = 0;

	(void) state;
	add_many(100, NULL);
	add("bad", NULL);
	while (ack.lost == 0)
	{
		assert_true(requests++ < 20);
		step();
		add("fresh", NULL);
		add("fresh", NULL);
		add("fresh", NULL);
		assert_int_equal(call_count, 1);
		answer(holds(&calls[0], "bad") ? PUBSUB_INVALID : PUBSUB_OK, NULL);
	}
	assert_int_equal(ack.lost, 1);
}

static void
listed_ids_fail_and_all_others_are_done(void **state)
{
	(void) state;
	add("done", NULL);
	add("gone", NULL);
	step();
	answer(PUBSUB_INVALID, "{\"gone\": \"PERMANENT_FAILURE_INVALID_ACK_ID\"}");
	assert_int_equal(ack.acked, 1);
	assert_int_equal(ack.lost, 1);
	/* What has expired says nothing about the next. */
	add("next", NULL);
	step();
	assert_int_equal(call_count, 1);
}

static void
ids_that_fail_for_now_are_paused_for(void **state)
{
	(void) state;
	add("early", "key");
	step();
	answer(PUBSUB_INVALID, "{\"early\": \"TRANSIENT_FAILURE_UNORDERED_ACK_ID\"}");
	step();
	assert_int_equal(call_count, 0);
	assert_true(ack_deadline(&ack) > clock_ms());
	step_later();
	assert_int_equal(call_count, 1);
}

/* Not even where the lease of one is being extended: that would only give it the time to be. */
static void
dropped_ones_are_not_sent_again(void **state)
{
	(void) state;
	add("sent", NULL);
	step();
	TAILQ_FIRST(&board.list[MESSAGE_ACKING])->lease_request = 1;
	add("waits", "key");
	ack_drop(&ack);
	assert_int_equal(TAILQ_FIRST(&board.list[MESSAGE_ACKING])->lease_request, 0);
	assert_int_equal(board.held, 1);
	answer(PUBSUB_TRANSIENT, NULL);
	assert_int_equal(board.held, 0);
	assert_true(ack_is_idle(&ack));
}

static struct message *
hold(const char *message_id, const char *ordering_key)
{
	struct message *message = message_new();

	message->message_id = memory_copy_text(message_id);
	message->ordering_key = memory_copy_text(ordering_key);
	message->lease_end = clock_ms() + LONG_LEASE_MS;
	message_hold(&board, message);
	return message;
}

/* What was dropped may have to be applied again, and what is behind it comes after it. */
static void
dropped_ones_take_their_followers_with_them(void **state)
{
	struct message *before;
	struct message *behind[2];
	struct message *other;

	(void) state;
	before = hold("before", "waits");
	add("sent", "sent");
	step();
	add("waits", "waits");
	behind[0] = hold("behind the sent", "sent");
	behind[1] = hold("behind the waiting", "waits");
	other = hold("of another", "other");
	ack_drop(&ack);
	assert_int_equal(behind[0]->lease_end, 0);
	assert_int_equal(behind[1]->lease_end, 0);
	assert_true(before->lease_end > clock_ms());
	assert_true(other->lease_end > clock_ms());
	message_forget(&board, before);
	message_forget(&board, behind[0]);
	message_forget(&board, behind[1]);
	message_forget(&board, other);
}

/* What was given up comes again, and until then nobody knows whether another database has it. */
static void
those_behind_what_was_given_up_are_dropped_with_it(void **state)
{
	struct message *behind;
	struct message *other;

	(void) state;
	add("gone", "key");
	behind = hold("behind", "key");
	other = hold("of another", "other");
	step();
	answer(PUBSUB_INVALID, "{\"gone\": \"PERMANENT_FAILURE_INVALID_ACK_ID\"}");
	assert_int_equal(ack.lost, 1);
	assert_true(behind->lease_end > clock_ms());
	ack_drop(&ack);
	assert_int_equal(behind->lease_end, 0);
	assert_true(other->lease_end > clock_ms());
	message_forget(&board, behind);
	message_forget(&board, other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(next_request_grows_while_one_is_under_way, set_up,
										tear_down),
		cmocka_unit_test_setup_teardown(failed_request_is_sent_again_after_a_pause, set_up,
										tear_down),
		cmocka_unit_test_setup_teardown(lease_that_ended_is_given_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ordered_ones_wait_for_the_one_before_and_the_loop_sleeps,
										set_up, tear_down),
		cmocka_unit_test_setup_teardown(long_ids_take_more_requests, set_up, tear_down),
		cmocka_unit_test_setup_teardown(others_pass_ordered_ones, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ordered_ones_keep_their_order_when_sent_again, set_up,
										tear_down),
		cmocka_unit_test_setup_teardown(bad_id_is_found_among_steady_traffic, set_up, tear_down),
		cmocka_unit_test_setup_teardown(listed_ids_fail_and_all_others_are_done, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ids_that_fail_for_now_are_paused_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(dropped_ones_are_not_sent_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(dropped_ones_take_their_followers_with_them, set_up,
										tear_down),
		cmocka_unit_test_setup_teardown(those_behind_what_was_given_up_are_dropped_with_it, set_up,
										tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
