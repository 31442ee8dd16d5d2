/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lane.h"
#include "memory.h"

static struct message_board board;
static const char one[] = "one connection";
static const char other[] = "another";

static struct message *
hold(const char *ordering_key)
{
	struct message *message = message_new();

	message->message_id = memory_copy_text("m");
	message->ordering_key = memory_copy_text(ordering_key);
	message_hold(&board, message);
	return message;
}

static int
set_up(void **state)
{
	(void) state;
	message_board_init(&board);
	return 0;
}

static int
tear_down(void **state)
{
	(void) state;
	for (int i = 0; i < MESSAGE_STATES; i++)
	{
		while (!TAILQ_EMPTY(&board.list[i]))
		{
			message_forget(&board, TAILQ_FIRST(&board.list[i]));
		}
	}
	assert_null(board.lanes.root);
	return 0;
}

static void
without_an_ordering_key_there_is_no_lane(void **state)
{
	struct message *message = hold(NULL);

	(void) state;
	assert_null(message->lane);
	message_run(&board, hold(NULL), one);
	assert_true(lane_may_run(message, other));
}

static void
lane_runs_on_one_connection_at_a_time(void **state)
{
	struct message *first = hold("a");
	struct message *second = hold("a");
	struct message *elsewhere = hold("b");

	(void) state;
	message_run(&board, first, one);
	assert_false(lane_may_run(second, other));
	assert_true(lane_may_run(second, one));
	assert_true(lane_may_run(elsewhere, other));
}

/* Whichever way it ceases to run. */
static void
lane_is_free_when_its_messages_ceased_to_run(void **state)
{
	struct message *messages[4];
	struct message *last;

	(void) state;
	for (int i = 0; i < 4; i++)
	{
		messages[i] = hold("a");
		message_run(&board, messages[i], one);
	}
	last = hold("a");
	message_set_state(&board, messages[0], MESSAGE_COMMITTED);
	message_set_state(&board, messages[1], MESSAGE_READY);
	message_set_state(&board, messages[2], MESSAGE_RETURNING);
	assert_false(lane_may_run(last, other));
	message_forget(&board, messages[3]);
	assert_true(lane_may_run(last, other));
}

/* As long as something of it is held, also without running. */
static void
lane_ends_with_its_last_message(void **state)
{
	struct message *first = hold("a");
	struct message *second = hold("a");

	(void) state;
	assert_ptr_equal(first->lane, second->lane);
	message_run(&board, first, one);
	message_set_state(&board, first, MESSAGE_COMMITTED);
	message_set_state(&board, first, MESSAGE_ACKING);
	message_forget(&board, second);
	assert_int_equal(first->lane->held, 1);
	message_forget(&board, first);
	assert_null(board.lanes.root);
}

static void
what_comes_back_is_in_its_old_place(void **state)
{
	struct message *first = hold("a");
	struct message *second = hold("a");
	struct message *third = hold("a");

	(void) state;
	message_run(&board, first, one);
	message_run(&board, second, one);
	message_set_state(&board, second, MESSAGE_READY);
	message_set_state(&board, first, MESSAGE_READY);
	assert_ptr_equal(TAILQ_FIRST(&board.list[MESSAGE_READY]), first);
	assert_ptr_equal(TAILQ_NEXT(first, link), second);
	assert_ptr_equal(TAILQ_NEXT(second, link), third);
}

static void
copy_takes_the_place_over(void **state)
{
	struct message *first = hold("a");
	struct message *second = hold("a");
	struct message *again = hold("a");

	(void) state;
	first->suspect = true;
	message_replace(&board, first, again);
	assert_ptr_equal(TAILQ_FIRST(&board.list[MESSAGE_READY]), again);
	assert_ptr_equal(TAILQ_NEXT(again, link), second);
	assert_true(again->suspect);
	assert_true(again->sequence < second->sequence);
	assert_int_equal(board.held, 2);
	assert_int_equal(board.count[MESSAGE_READY], 2);
	assert_int_equal(again->lane->held, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_an_ordering_key_there_is_no_lane, set_up,
										tear_down),
		cmocka_unit_test_setup_teardown(lane_runs_on_one_connection_at_a_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lane_is_free_when_its_messages_ceased_to_run, set_up,
										tear_down),
		cmocka_unit_test_setup_teardown(lane_ends_with_its_last_message, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_comes_back_is_in_its_old_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(copy_takes_the_place_over, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
