/* SPDX-License-Identifier: PostgreSQL */
/* /metrics of a puller whose every number is known, and no two are alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "health.h"
#include "scrape.h"

#define NOW 1000000

static struct puller puller;
static struct config config;
static char source[] = "s";
static char subscription[] = "projects/p/subscriptions/l";
static char handler[] = "post";
static struct buffer out;

void __wrap_health_look(const struct puller *that, int64_t now, struct health *health);
void
__wrap_health_look(const struct puller *that, int64_t now, struct health *health)
{
	static const char *const name[HEALTH_CHECKS] = {"database", "handler", "token", "pubsub",
													"progress"};

	(void) that;
	assert_int_equal(now, NOW);
	memset(health, 0, sizeof(*health));
	health->ready = true;
	for (size_t i = 0; i < HEALTH_CHECKS; i++)
	{
		health->check[i].name = name[i];
		health->check[i].ok = i % 2 == 0;
	}
}

/* What the database said three and a half seconds ago. */
static void
set_known(const char *status)
{
	json_object_put(puller.look.known);
	puller.look.known = json_tokener_parse(status);
	puller.look.known_ms = NOW - 3500;
	assert_non_null(puller.look.known);
}

static int
start(void **state)
{
	(void) state;
	memset(&puller, 0, sizeof(puller));
	config = (struct config){.source = source, .subscription = subscription, .handler = handler};
	puller.config = &config;
	metrics_init(&puller.metrics, NULL);
	puller.contention.until = NOW;
	buffer_init(&out, 1000000);
	return 0;
}

static int
end(void **state)
{
	(void) state;
	json_object_put(puller.look.known);
	metrics_free(&puller.metrics);
	buffer_free(&out);
	return 0;
}

/* Asks anew; each of these lines, ended by NULL, is one of the answer. */
static void
assert_lines(const char *const *lines)
{
	char whole[128];

	buffer_free(&out);
	buffer_init(&out, 1000000);
	scrape_write(&puller, NOW, &out);
	for (; *lines != NULL; lines++)
	{
		snprintf(whole, sizeof(whole), "\n%s\n", *lines);
		if (strstr(out.bytes, whole) == NULL)
		{
			fail_msg("\"%s\" is not in\n%s", *lines, out.bytes);
		}
	}
}

static void
what_is_counted_is_what_is_said(void **state)
{
	(void) state;
	for (size_t verdict = 0; verdict < METRICS_VERDICTS; verdict++)
	{
		puller.metrics.messages[verdict][LABEL_NONE] = 100 + verdict;
	}
	puller.metrics.pulled = 1;
	puller.metrics.dead_duplicates = 2;
	puller.metrics.pulls[METRICS_PULL_FULL] = 3;
	puller.metrics.pulls[METRICS_PULL_EMPTY] = 4;
	puller.metrics.pulls[METRICS_PULL_FAILED] = 5;
	puller.pull.in_flight = 6;
	puller.ack.acked = 7;
	puller.ack.retried = 8;
	puller.ack.lost = 9;
	puller.lease.extended = 10;
	puller.lease.expired = 11;
	puller.metrics.committed = 12;
	puller.metrics.failed = 13;
	puller.metrics.unknown = 14;
	puller.metrics.connected = 15;
	puller.contention.met = 16;
	metrics_failure(&puller.metrics, "23505");
	assert_lines((const char *const[]){"inbox_messages_total{verdict=\"applied\"} 100",
									   "inbox_messages_total{verdict=\"duplicate\"} 101",
									   "inbox_messages_total{verdict=\"conflict\"} 102",
									   "inbox_messages_total{verdict=\"parked\"} 103",
									   "inbox_messages_total{verdict=\"expired\"} 104",
									   "inbox_messages_total{verdict=\"dead\"} 105",
									   "inbox_messages_total{verdict=\"later\"} 106",
									   "inbox_messages_total{verdict=\"retrying\"} 107",
									   "inbox_messages_total{verdict=\"halted\"} 108",
									   "inbox_pulled_messages_total 1",
									   "inbox_dead_letter_duplicates_total 2",
									   "inbox_pulls_total{result=\"messages\"} 3",
									   "inbox_pulls_total{result=\"empty\"} 4",
									   "inbox_pulls_total{result=\"failed\"} 5",
									   "inbox_pulls_in_flight 6",
									   "inbox_acks_total{result=\"ok\"} 7",
									   "inbox_acks_total{result=\"again\"} 8",
									   "inbox_acks_total{result=\"lost\"} 9",
									   "inbox_lease_extensions_total 10",
									   "inbox_leases_expired_total 11",
									   "inbox_transactions_total{outcome=\"committed\"} 12",
									   "inbox_transactions_total{outcome=\"failed\"} 13",
									   "inbox_transactions_total{outcome=\"unknown\"} 14",
									   "inbox_database_connects_total 15",
									   "inbox_contentions_total 16",
									   "inbox_failures_total{sqlstate_class=\"23\"} 1",
									   NULL});
}

static void
what_is_now_is_said_as_it_is(void **state)
{
	(void) state;
	puller.board.count[MESSAGE_READY] = 1;
	puller.board.count[MESSAGE_RUNNING] = 2;
	puller.board.count[MESSAGE_ACKING] = 3;
	puller.board.count[MESSAGE_RETURNING] = 4;
	puller.board.held_bytes = 12345678;
	puller.workers = 3;
	puller.worker[0].db.state = DB_IDLE;
	puller.worker[2].db.state = DB_IDLE;
	puller.auth.version = 1;
	puller.auth.taken_ms = NOW - 61500;
	puller.contention.exclusive = true;
	puller.contention.until = NOW + 1;
	puller.halted = true;
	puller.started_us = 1700000000250000;
	assert_lines((const char *const[]){
		"inbox_outstanding_messages{state=\"ready\"} 1",
		"inbox_outstanding_messages{state=\"running\"} 2",
		"inbox_outstanding_messages{state=\"acking\"} 3",
		"inbox_outstanding_messages{state=\"returning\"} 4",
		"inbox_outstanding_bytes 12345678",
		"inbox_database_connections 2",
		"inbox_token_age_seconds 61.5",
		"inbox_contention_exclusive 1",
		"inbox_source_halted 1",
		"process_start_time_seconds 1700000000.25",
		"inbox_build_info{version=\"" INBOX_VERSION "\"} 1",
		"inbox_source_info{source=\"s\",subscription=\"projects/p/subscriptions/l\","
		"handler=\"post\"} 1",
		"inbox_ready 1",
		"inbox_healthy 0",
		"inbox_check{check=\"database\"} 1",
		"inbox_check{check=\"handler\"} 0",
		"inbox_check{check=\"token\"} 1",
		"inbox_check{check=\"pubsub\"} 0",
		"inbox_check{check=\"progress\"} 1",
		NULL});
}

static void
a_time_that_is_over_is_not_said(void **state)
{
	(void) state;
	puller.contention.exclusive = true;
	puller.contention.until = NOW;
	assert_lines((const char *const[]){"inbox_contention_exclusive 0", "inbox_source_halted 0",
									   "inbox_database_connections 0", NULL});
	assert_null(strstr(out.bytes, "inbox_token_age_seconds"));
	assert_null(strstr(out.bytes, "inbox_dead_letters"));
	assert_null(strstr(out.bytes, "inbox_status_age_seconds"));
}

static void
what_the_database_knows_is_said_with_its_age(void **state)
{
	(void) state;
	set_known("{\"status\": {\"retrying\": 21, \"dead\": 22, \"parked\": 23, \"conflicts\": 24,"
			  " \"expired\": 25, \"blocked_keys\": 26, \"blocked_age\": 912.25, \"claims\": 27,"
			  " \"claim_bytes\": 28}}");
	assert_lines((const char *const[]){
		"inbox_retrying_messages 21", "inbox_dead_letters 22", "inbox_parked_messages 23",
		"inbox_conflicts 24", "inbox_expired_messages 25", "inbox_blocked_ordering_keys 26",
		"inbox_blocked_ordering_key_age_seconds 912.25", "inbox_claims 27", "inbox_claim_bytes 28",
		"inbox_status_age_seconds 3.5", NULL});
	set_known("{\"status\": {\"retrying\": 0, \"blocked_keys\": 0, \"blocked_age\": null}}");
	assert_lines((const char *const[]){"inbox_retrying_messages 0",
									   "inbox_blocked_ordering_key_age_seconds 0", NULL});
	puller.look.known_ms = NOW - 300001;
	assert_lines((const char *const[]){"inbox_ready 1", NULL});
	assert_null(strstr(out.bytes, "inbox_retrying_messages"));
}

static void
histograms_have_what_was_added(void **state)
{
	(void) state;
	metrics_batch(&puller.metrics, 4, 800000, 900000);
	metrics_age(&puller.metrics, 1000000, 3500000);
	assert_lines((const char *const[]){
		"inbox_batch_size_messages_sum 4", "inbox_batch_size_messages_count 1",
		"inbox_handler_seconds_sum 0.8", "inbox_handler_seconds_count 4",
		"inbox_transaction_seconds_sum 0.9", "inbox_transaction_seconds_count 1",
		"inbox_publish_to_commit_seconds_sum 2.5",
		"inbox_publish_to_commit_seconds_bucket{le=\"+Inf\"} 1", NULL});
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_counted_is_what_is_said, start, end),
		cmocka_unit_test_setup_teardown(what_is_now_is_said_as_it_is, start, end),
		cmocka_unit_test_setup_teardown(a_time_that_is_over_is_not_said, start, end),
		cmocka_unit_test_setup_teardown(what_the_database_knows_is_said_with_its_age, start, end),
		cmocka_unit_test_setup_teardown(histograms_have_what_was_added, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
