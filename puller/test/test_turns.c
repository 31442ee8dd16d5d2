/* SPDX-License-Identifier: PostgreSQL */
/* Single turns of the loop, with every answer of the service and the database given by hand. */
#include "simulated.h"

static int64_t
call_due(const struct call *call)
{
	(void) call;
	return CLOCK_NEVER;
}

static int
timeline_seen(const struct puller *asker)
{
	(void) asker;
	return 0;
}

static void
connect_begins(struct worker *worker)
{
	(void) worker;
}

static void
transaction_begins(struct worker *worker)
{
	(void) worker;
}

/* ---- the service  */

static struct call
take_kind(enum call_kind kind)
{
	for (size_t i = 0; i < call_count; i++)
	{
		if (calls[i].kind == kind)
		{
			return take_call(i);
		}
	}
	fail_msg("no request of kind %d is under way", (int) kind);
	abort();
}

/* Messages as "a b c", all of one ordering key or, when that is empty, of none. */
static void
pull_brings(const char *names, const char *ordering_key)
{
	struct call call = take_kind(CALL_PULL);
	static int delivery;
	char body[2048] = "{\"receivedMessages\":[";
	size_t at = strlen(body);

	delivery++;
	for (const char *name = names; *name != '\0'; name += strspn(name, " "))
	{
		int length = (int) strcspn(name, " ");

		at += (size_t) snprintf(body + at, sizeof(body) - at,
								"%s{\"ackId\":\"%.*s%d\",\"message\":{\"messageId\":\"%.*s\","
								"\"data\":\"YQ==\",\"orderingKey\":\"%s\","
								"\"attributes\":{\"idempotency_key\":\"%.*s\"}}}",
								name == names ? "" : ",", length, name, delivery, length, name,
								ordering_key, length, name);
		name += length;
	}
	snprintf(body + at, sizeof(body) - at, "]}");
	answer_call(&call, PUBSUB_OK, body, NULL);
}

/* The ids on a list, as "a1 b1". */
static const char *
list(struct puller *puller, enum message_state state)
{
	static char text[256];
	const struct message *message;

	text[0] = '\0';
	TAILQ_FOREACH(message, &puller->board.list[state], link)
	{
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				 text[0] != '\0' ? " " : "", message->message_id);
	}
	return text;
}

/* ---- the database  */

/* The one transaction under way is committed, with this verdict for its one message. */
static void
commit(struct worker *worker, const char *verdict)
{
	PGresult *rows = new_rows(2);

	assert_int_equal(worker->db.state, DB_BUSY);
	set_int(rows, 0, 0, 1);
	set_text(rows, 0, 1, verdict);
	answer_transaction(worker, (struct db_answer){.outcome = DB_COMMITTED, .rows = rows});
	PQclear(rows);
}

static void
refuse(struct worker *worker, const char *sqlstate)
{
	answer_transaction(worker, (struct db_answer){.outcome = DB_FAILED, .sqlstate = sqlstate});
}

/* A puller that has connected, knows its subscription and waits for messages. */
static struct puller *
begin(const char *workers)
{
	struct puller *puller = &pullers[0];
	struct call call;

	world_ms = 1000;
	load_clean_environment();
	start_puller(0, workers, "1");
	turn(puller);
	for (int i = 0; i < puller->workers; i++)
	{
		connected(&puller->worker[i], "00000001");
		turn(puller);
	}
	call = take_kind(CALL_GET);
	answer_call(&call, PUBSUB_OK, "{\"ackDeadlineSeconds\":60}", NULL);
	turn(puller);
	return puller;
}

/* Another pull, whatever the credit. */
static void
want_more(struct puller *puller)
{
	turn(puller);
	puller->batch_limit = 8;
	turn(puller);
}

static int
tear_down(void **state)
{
	(void) state;
	end_puller(0);
	return 0;
}

/* ---- pulls --------------------------------------------------------------------------------- */

static size_t
count_pulls(void)
{
	size_t count = 0;

	for (size_t i = 0; i < call_count; i++)
	{
		count += calls[i].kind == CALL_PULL;
	}
	return count;
}

/* A pull was answered with nothing after so long; how many are sent again in that turn. */
static size_t
pulls_after(struct puller *puller, int64_t ms, long status)
{
	struct call call = take_kind(CALL_PULL);
	struct pubsub_answer answer = {.outcome = status == 200 ? PUBSUB_OK : PUBSUB_TRANSIENT,
								   .status = status,
								   .error = status == 200 ? NULL : "simulated",
								   .body = "{}",
								   .size = 2,
								   .sent_ms = call.sent_ms};

	world_ms = call.sent_ms + ms;
	answer.first_byte_ms = world_ms;
	call.callback(call.context, &answer);
	free_call(&call);
	turn(puller);
	return count_pulls();
}

/* Whatever answers at once without a message must not be asked in a tight loop. */
static void
pull_that_was_not_held_is_paused_for(void **state)
{
	struct puller *puller = begin("1");

	(void) state;
	assert_int_equal(pulls_after(puller, 90000, 200), 1);
	assert_int_equal(pulls_after(puller, 60000, 504), 1);
	assert_int_equal(pulls_after(puller, 5, 200), 0);
	world_ms = flow_deadline(puller, world_ms);
	turn(puller);
	assert_int_equal(pulls_after(puller, 5, 504), 0);
	world_ms = flow_deadline(puller, world_ms);
	turn(puller);
	assert_int_equal(count_pulls(), 1);
}

/* It was 60 s, and somebody makes it 10 s: the next messages are extended in time. */
static void
changed_ack_deadline_is_noticed(void **state)
{
	struct puller *puller = begin("1");
	struct call call;

	(void) state;
	world_ms += 300000;
	pull_brings("a", "");
	turn(puller);
	call = take_kind(CALL_GET);
	assert_int_equal(count_pulls(), 0);
	answer_call(&call, PUBSUB_OK, "{\"ackDeadlineSeconds\":10}", NULL);
	turn(puller);
	pull_brings("b", "");
	turn(puller);
	world_ms += 4000;
	turn(puller);
	call = take_kind(CALL_MODACK);
	assert_int_equal(call.count, 1);
	assert_int_equal(call.ids[0][0], 'b');
	answer_call(&call, PUBSUB_OK, "{}", NULL);
}

/* ---- order  */

/* When the one before is not retried any more, the one behind must not run at once. */
static void
what_is_behind_one_that_waits_waits_too(void **state)
{
	struct puller *puller = begin("1");

	(void) state;
	pull_brings("b c", "key");
	turn(puller);
	commit(&puller->worker[0], "later");
	turn(puller);
	assert_int_equal(puller->worker[0].db.state, DB_IDLE);
	assert_string_equal(list(puller, MESSAGE_RETURNING), "b c");
}

static void
lose_lease(struct puller *puller, const char *message_id)
{
	struct json_object *failures = json_object_new_object();
	struct call call;

	world_ms += 21000; /* a third of the deadline and more */
	turn(puller);
	call = take_kind(CALL_MODACK);
	for (size_t i = 0; i < call.count; i++)
	{
		if (strncmp(call.ids[i], message_id, strlen(message_id)) == 0)
		{
			json_object_object_add(failures, call.ids[i],
								   json_object_new_string("PERMANENT_FAILURE_INVALID_ACK_ID"));
		}
	}
	answer_call(&call, PUBSUB_INVALID, "", failures);
}

/* "a" is lost; what comes again comes in order, and must not be put where "b" was before "a". */
static void
what_comes_again_behind_a_lost_lease_is_in_order(void **state)
{
	struct puller *puller = begin("1");

	(void) state;
	pull_brings("x", "");
	want_more(puller);
	pull_brings("a b c", "key");
	turn(puller);
	lose_lease(puller, "a");
	turn(puller);
	pull_brings("a b", "key");
	assert_string_equal(list(puller, MESSAGE_READY), "a b");
	commit(&puller->worker[0], "applied");
	turn(puller);
	assert_string_equal(list(puller, MESSAGE_RUNNING), "a");
}

/* The lease of one that runs is lost, and then its connection: it comes again by itself. */
static void
lost_lease_ends_what_would_be_run_again(void **state)
{
	struct puller *puller = begin("1");

	(void) state;
	pull_brings("a b", "key");
	turn(puller);
	lose_lease(puller, "a");
	lose_connection(&puller->worker[0]);
	assert_string_equal(list(puller, MESSAGE_READY), "a b");
	connected(&puller->worker[0], "00000001");
	turn(puller);
	assert_int_equal(puller->board.held, 0);
}

/* "a" is committed on this server and maybe on no other: "b" would overtake it on another one. */
static void
warning_with_a_commit_ends_the_lane(void **state)
{
	struct puller *puller = begin("1");

	(void) state;
	pull_brings("a b", "key");
	turn(puller);
	answer_transaction(&puller->worker[0], (struct db_answer){.outcome = DB_UNKNOWN});
	turn(puller);
	assert_int_equal(puller->worker[0].db.state, DB_IDLE);
	assert_int_equal(puller->board.held, 0);
}

/* ---- connections  */

/* It pauses over a batch when its connection goes: another one runs that. */
static void
another_connection_takes_over(void **state)
{
	struct puller *puller = begin("2");

	(void) state;
	pull_brings("a", "");
	turn(puller);
	refuse(&puller->worker[0], "53300");
	turn(puller);
	assert_int_equal(puller->worker[1].db.state, DB_IDLE);
	not_connected(&puller->worker[0]);
	turn(puller);
	assert_int_equal(puller->worker[1].db.state, DB_BUSY);
	assert_string_equal(list(puller, MESSAGE_RUNNING), "a");
}

static void
old_primary_is_left_when_there_is_a_new_one(void **state)
{
	struct puller *puller = begin("2");

	(void) state;
	pull_brings("a b c", "");
	turn(puller);
	commit(&puller->worker[1], "applied");
	assert_string_equal(list(puller, MESSAGE_ACKING), "b");
	not_connected(&puller->worker[1]);
	connected(&puller->worker[1], "00000002");
	/* "b" is not acknowledged any more; what ran on the old primary runs on the new one. */
	assert_string_equal(list(puller, MESSAGE_ACKING), "");
	assert_int_equal(puller->worker[0].db.state, DB_DOWN);
	assert_string_equal(list(puller, MESSAGE_READY), "a c");
	turn(puller);
	assert_string_equal(list(puller, MESSAGE_RUNNING), "a");
	assert_int_equal(puller->worker[1].db.state, DB_BUSY);
}

static void
broken_connection_is_looked_at_at_once(void **state)
{
	struct puller *puller = begin("1");

	(void) state;
	pull_brings("a", "");
	turn(puller);
	broken_connections = true;
	assert_int_equal(flow_deadline(puller, world_ms), world_ms);
	broken_connections = false;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(pull_that_was_not_held_is_paused_for, tear_down),
		cmocka_unit_test_teardown(changed_ack_deadline_is_noticed, tear_down),
		cmocka_unit_test_teardown(what_is_behind_one_that_waits_waits_too, tear_down),
		cmocka_unit_test_teardown(what_comes_again_behind_a_lost_lease_is_in_order, tear_down),
		cmocka_unit_test_teardown(lost_lease_ends_what_would_be_run_again, tear_down),
		cmocka_unit_test_teardown(warning_with_a_commit_ends_the_lane, tear_down),
		cmocka_unit_test_teardown(another_connection_takes_over, tear_down),
		cmocka_unit_test_teardown(old_primary_is_left_when_there_is_a_new_one, tear_down),
		cmocka_unit_test_teardown(broken_connection_is_looked_at_at_once, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
