/* SPDX-License-Identifier: PostgreSQL */
/* What becomes of messages when a connection turns out to be to another cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "clock.h"
#include "cluster.h"
#include "memory.h"

#define LEASE_MS 60000

static struct puller puller;
static int closed;
static int told;

void __wrap_db_close(struct db *db, const char *why);
void
__wrap_db_close(struct db *db, const char *why)
{
	(void) why;
	db->state = DB_DOWN;
	closed++;
}

void __wrap_log_event(enum log_level level, const char *event, ...);
void
__wrap_log_event(enum log_level level, const char *event, ...)
{
	(void) level;
	assert_string_equal(event, "database_changed");
	told++;
}

static int
set_up(void **state)
{
	(void) state;
	closed = told = 0;
	puller = (struct puller){.workers = 2};
	message_board_init(&puller.board);
	ack_init(&puller.ack, &puller.board, NULL);
	for (int i = 0; i < puller.workers; i++)
	{
		puller.worker[i].puller = &puller;
		puller.worker[i].db.state = DB_IDLE;
		puller.worker[i].db.facts = (struct db_facts){.system_id = "1", .timeline = "1"};
	}
	cluster_watch(&puller, &puller.worker[0].db.facts);
	return 0;
}

static int
tear_down(void **state)
{
	struct message *message;

	(void) state;
	while ((message = TAILQ_FIRST(&puller.board.list[MESSAGE_READY])) != NULL)
	{
		message_forget(&puller.board, message);
	}
	assert_int_equal(puller.board.held, 0);
	free(puller.system_id);
	free(puller.timeline);
	return 0;
}

static struct message *
hold(const char *ordering_key)
{
	struct message *message = message_new();

	message->message_id = memory_copy_text("m");
	message->ack_id = memory_copy_text("a");
	message->ordering_key = memory_copy_text(ordering_key);
	message->lease_end = clock_ms() + LEASE_MS;
	message_hold(&puller.board, message);
	return message;
}

static void
commit(struct worker *worker, struct message *message)
{
	message_run(&puller.board, message, worker);
	message_set_state(&puller.board, message, MESSAGE_COMMITTED);
	ack_add(&puller.ack, message);
}

static void
run(struct worker *worker, struct message *message)
{
	message_run(&puller.board, message, worker);
	worker->batch = batch_new(&message, 1);
	worker->work = WORK_RUN;
	worker->db.state = DB_BUSY;
}

static void
connect_elsewhere(struct worker *worker, char *system_id, char *timeline)
{
	worker->db.facts.system_id = system_id;
	worker->db.facts.timeline = timeline;
	cluster_watch(&puller, &worker->db.facts);
}

static void
nothing_happens_on_the_same_cluster(void **state)
{
	struct message *message = hold(NULL);

	(void) state;
	commit(&puller.worker[1], message);
	cluster_watch(&puller, &puller.worker[1].db.facts);
	assert_int_equal(told + closed, 0);
	assert_int_equal(puller.board.held, 1);
	ack_drop(&puller.ack);
}

/* What follows a dropped one in its ordering key would be applied before it, wherever it is. */
static void
followers_are_given_up_where_they_run_too(void **state)
{
	struct message *dropped = hold("k");
	struct message *runs = hold("k");
	struct message *waits = hold("k");
	struct message *other = hold("another");

	(void) state;
	commit(&puller.worker[1], dropped);
	run(&puller.worker[1], runs);
	connect_elsewhere(&puller.worker[0], "1", "2");
	assert_int_equal(told, 1);
	assert_int_equal(closed, 1);
	assert_int_equal(puller.worker[0].db.state, DB_IDLE);
	assert_int_equal(puller.board.count[MESSAGE_READY], 3);
	assert_int_equal(puller.board.held, 3);
	assert_int_equal(runs->lease_end, 0);
	assert_int_equal(waits->lease_end, 0);
	assert_true(other->lease_end > clock_ms());
}

/* A server in the place of another may be on the same timeline: most are on their first. */
static void
another_system_is_another_cluster(void **state)
{
	struct message *committed = hold(NULL);

	(void) state;
	commit(&puller.worker[1], committed);
	connect_elsewhere(&puller.worker[0], "2", "1");
	assert_int_equal(told, 1);
	assert_int_equal(closed, 1);
	assert_int_equal(puller.board.held, 0);
}

/* What a server does not tell is no other cluster, and does not make the first one forgotten. */
static void
a_server_that_does_not_tell(void **state)
{
	struct message *committed = hold(NULL);

	(void) state;
	commit(&puller.worker[1], committed);
	connect_elsewhere(&puller.worker[0], NULL, NULL);
	assert_int_equal(told + closed, 0);
	assert_int_equal(puller.board.held, 1);
	connect_elsewhere(&puller.worker[0], "1", "2");
	assert_int_equal(told, 1);
	assert_int_equal(puller.board.held, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_happens_on_the_same_cluster, set_up, tear_down),
		cmocka_unit_test_setup_teardown(followers_are_given_up_where_they_run_too, set_up,
										tear_down),
		cmocka_unit_test_setup_teardown(another_system_is_another_cluster, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_server_that_does_not_tell, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
