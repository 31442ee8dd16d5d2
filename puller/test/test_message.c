/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"
#include "message.h"

static struct message *
make_message(const char *message_id, size_t size)
{
	struct message *message = message_new();

	message->message_id = memory_copy_text(message_id);
	message->size = size;
	return message;
}

/* Takes a message from MESSAGE_READY to "state" by steps that are allowed. */
static void
lead_to(struct message_board *board, struct message *message, enum message_state state)
{
	static const enum message_state way[] = {MESSAGE_RUNNING, MESSAGE_COMMITTED, MESSAGE_ACKING};

	if (state == MESSAGE_RETURNING)
	{
		message_set_state(board, message, state);
		return;
	}
	for (size_t i = 0; message->state != state; i++)
	{
		message_set_state(board, message, way[i]);
	}
}

static void
test_new_message_is_empty(void **state)
{
	struct message *message = message_new();

	(void) state;
	assert_null(message->ack_id);
	assert_null(message->key);
	assert_null(message->data);
	assert_true(message->publish_time == INT64_MIN);
	assert_int_equal(message->defect, DEFECT_NONE);
	message_free(message);
}

static void
test_board_counts_what_it_holds(void **state)
{
	struct message_board board;
	struct message *one = make_message("1", 100);
	struct message *two = make_message("2", 50);

	(void) state;
	message_board_init(&board);
	message_hold(&board, one);
	message_hold(&board, two);
	assert_int_equal(board.held, 2);
	assert_int_equal(board.held_bytes, 150);
	assert_int_equal(board.count[MESSAGE_READY], 2);
	assert_ptr_equal(TAILQ_FIRST(&board.list[MESSAGE_READY]), one);

	message_set_state(&board, one, MESSAGE_RUNNING);
	assert_int_equal(board.count[MESSAGE_READY], 1);
	assert_int_equal(board.count[MESSAGE_RUNNING], 1);
	assert_int_equal(board.held, 2);
	assert_ptr_equal(TAILQ_FIRST(&board.list[MESSAGE_READY]), two);
	assert_ptr_equal(TAILQ_FIRST(&board.list[MESSAGE_RUNNING]), one);

	message_forget(&board, one);
	assert_int_equal(board.held, 1);
	assert_int_equal(board.held_bytes, 50);
	assert_int_equal(board.count[MESSAGE_RUNNING], 0);
	assert_true(TAILQ_EMPTY(&board.list[MESSAGE_RUNNING]));
	message_forget(&board, two);
	assert_int_equal(board.held, 0);
	assert_int_equal(board.held_bytes, 0);
}

/* What comes back is older than what waits, and goes before it. */
static void
test_ready_keeps_the_order_of_arrival(void **state)
{
	static const char *const ids[] = {"1", "2", "3", "4"};
	struct message_board board;
	struct message *message[4];
	struct message *at;

	(void) state;
	message_board_init(&board);
	for (int i = 0; i < 4; i++)
	{
		message[i] = make_message(ids[i], 1);
		message_hold(&board, message[i]);
	}
	message_set_state(&board, message[2], MESSAGE_RUNNING);
	message_set_state(&board, message[0], MESSAGE_RUNNING);
	message_set_state(&board, message[2], MESSAGE_READY);
	message_set_state(&board, message[0], MESSAGE_READY);
	at = TAILQ_FIRST(&board.list[MESSAGE_READY]);
	for (int i = 0; i < 4; i++, at = TAILQ_NEXT(at, link))
	{
		assert_ptr_equal(at, message[i]);
	}
	for (int i = 0; i < 4; i++)
	{
		message_forget(&board, message[i]);
	}
}

static struct message *
hold_in_lane(struct message_board *board, const char *message_id, const char *ordering_key)
{
	struct message *message = make_message(message_id, 1);

	message->ordering_key = memory_copy_text(ordering_key);
	message->lease_end = 1000;
	message_hold(board, message);
	return message;
}

static void
test_a_message_that_comes_again_keeps_its_place(void **state)
{
	struct message_board board;
	struct message *one;
	struct message *two;
	struct message *again;

	(void) state;
	message_board_init(&board);
	one = hold_in_lane(&board, "1", "lane");
	two = hold_in_lane(&board, "2", "lane");
	again = hold_in_lane(&board, "1", "lane");
	one->suspect = true;
	message_replace(&board, one, again);
	assert_int_equal(board.held, 2);
	assert_int_equal(board.count[MESSAGE_READY], 2);
	assert_true(again->suspect);
	assert_ptr_equal(TAILQ_FIRST(&board.list[MESSAGE_READY]), again);
	/* Also after both have been taken and given back. */
	message_set_state(&board, again, MESSAGE_RUNNING);
	message_set_state(&board, two, MESSAGE_RUNNING);
	message_set_state(&board, two, MESSAGE_READY);
	message_set_state(&board, again, MESSAGE_READY);
	assert_ptr_equal(TAILQ_FIRST(&board.list[MESSAGE_READY]), again);
	message_forget(&board, again);
	message_forget(&board, two);
}

static void
test_leases_behind_a_lost_one_end(void **state)
{
	static const struct
	{
		const char *ordering_key;
		int64_t lease_end;
	} held[] = {{"a", 1000}, {"a", 1000}, {"b", 1000}, {"a", 0}, {NULL, 1000}, {"a", 0}};
	struct message_board board;
	struct message *message[6];

	(void) state;
	message_board_init(&board);
	for (int i = 0; i < 6; i++)
	{
		message[i] = hold_in_lane(&board, "id", held[i].ordering_key);
	}
	message[5]->lease_request = 7;
	message_end_lane(&board, message[4]);
	message_end_lane(&board, message[1]);
	for (int i = 0; i < 6; i++)
	{
		assert_int_equal(message[i]->lease_end, held[i].lease_end);
	}
	assert_int_equal(message[5]->lease_request, 0);
	for (int i = 0; i < 6; i++)
	{
		message_forget(&board, message[i]);
	}
}

/* Whether a step ends the process by abort(), tried in a child. */
static bool
aborts(enum message_state from, enum message_state to)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
	{
		const struct rlimit no_core = {0, 0};
		struct message_board board;
		struct message *message = make_message("1", 1);

		/* cmocka catches the signal otherwise. */
		signal(SIGABRT, SIG_DFL);
		setrlimit(RLIMIT_CORE, &no_core);
		close(STDERR_FILENO);
		message_board_init(&board);
		message_hold(&board, message);
		lead_to(&board, message, from);
		message_set_state(&board, message, to);
		message_forget(&board, message);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status))
	{
		assert_int_equal(WEXITSTATUS(status), 0);
		return false;
	}
	assert_int_equal(WTERMSIG(status), SIGABRT);
	return true;
}

/* Above all: nothing but a committed message is ever acknowledged. */
static void
test_every_step_is_allowed_or_aborts(void **state)
{
	static const bool allowed[MESSAGE_STATES][MESSAGE_STATES] = {
		[MESSAGE_READY][MESSAGE_RUNNING] = true,	 [MESSAGE_READY][MESSAGE_RETURNING] = true,
		[MESSAGE_RUNNING][MESSAGE_READY] = true,	 [MESSAGE_RUNNING][MESSAGE_COMMITTED] = true,
		[MESSAGE_RUNNING][MESSAGE_RETURNING] = true, [MESSAGE_COMMITTED][MESSAGE_ACKING] = true,
	};

	(void) state;
	for (int from = 0; from < MESSAGE_STATES; from++)
	{
		for (int to = 0; to < MESSAGE_STATES; to++)
		{
			if (aborts((enum message_state) from, (enum message_state) to) == allowed[from][to])
			{
				fail_msg("from state %d to state %d", from, to);
			}
		}
	}
}

static void
test_each_defect_has_the_name_of_the_database(void **state)
{
	(void) state;
	assert_string_equal(message_defect_name(DEFECT_NONE), "none");
	assert_string_equal(message_defect_name(DEFECT_NO_KEY), "no_key");
	assert_string_equal(message_defect_name(DEFECT_UNSTORABLE), "unstorable");
	assert_string_equal(message_defect_name(DEFECT_UNDECODABLE), "undecodable");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_message_is_empty),
		cmocka_unit_test(test_board_counts_what_it_holds),
		cmocka_unit_test(test_ready_keeps_the_order_of_arrival),
		cmocka_unit_test(test_a_message_that_comes_again_keeps_its_place),
		cmocka_unit_test(test_leases_behind_a_lost_one_end),
		cmocka_unit_test(test_every_step_is_allowed_or_aborts),
		cmocka_unit_test(test_each_defect_has_the_name_of_the_database),
	};

	return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
