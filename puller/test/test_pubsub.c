/* SPDX-License-Identifier: PostgreSQL */
/* What is sent to Pub/Sub, and what an answer of it means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "pubsub.h"

#define HIDDEN "EXACTLY_ONCE_ACKID_FAILURE"

/* The request that was sent last, and how often one was. */
static struct http_spec spec;
static char *url;
static char *body;
static char *authorization;
static int requests;

/* The answer that was handed on last. */
static struct pubsub_answer answer;
static int answers;
static char error[1024];

static struct pubsub pubsub;
static struct auth auth;
static struct config config;
static char token_file[] = "/tmp/inbox-token-XXXXXX";

void __wrap_http_start(struct http *http, const struct http_spec *sent);

void
__wrap_http_start(struct http *http, const struct http_spec *sent)
{
	(void) http;
	requests++;
	free(url);
	free(body);
	free(authorization);
	spec = *sent;
	url = memory_copy_text(sent->url);
	body = memory_copy_text(sent->body);
	authorization = memory_copy_text(sent->authorization);
}

static void
take(void *context, const struct pubsub_answer *given)
{
	assert_ptr_equal(context, &answers);
	answers++;
	answer = *given;
	snprintf(error, sizeof(error), "%s", given->error != NULL ? given->error : "");
	answer.failures = json_object_get(given->failures);
}

static void
respond(long status, const char *text)
{
	struct http_response response = {.status = status, .body = text, .size = strlen(text)};

	json_object_put(answer.failures);
	answer = (struct pubsub_answer){0};
	snprintf(response.error, sizeof(response.error), "%s", status == 0 ? "connection reset" : "");
	spec.callback(spec.context, &response);
}

static void
acknowledge(void)
{
	static char one[] = "a/\"1";
	static char two[] = "b";
	char *ids[] = {one, two};

	pubsub_acknowledge(&pubsub, ids, 2, take, &answers);
}

static int
set_up(void **state)
{
	static char subscription[] = "projects/p/subscriptions/s%+";
	static char endpoint[] = "https://pubsub.test";

	(void) state;
	config = (struct config){
		.subscription = subscription, .endpoint = endpoint, .emulator = true, .max_response = 1000};
	requests = 0;
	answers = 0;
	auth_init(&auth, NULL, &config);
	pubsub_init(&pubsub, NULL, &auth, &config);
	return 0;
}

static int
tear_down(void **state)
{
	(void) state;
	json_object_put(answer.failures);
	answer = (struct pubsub_answer){0};
	pubsub_free(&pubsub);
	auth_free(&auth);
	return 0;
}

/* ---- requests ------------------------------------------------------------------------------- */

static void
names_are_percent_encoded(void **state)
{
	(void) state;
	pubsub_get_subscription(&pubsub, take, &answers);
	assert_string_equal(url, "https://pubsub.test/v1/projects/p/subscriptions/s%25%2B");
	assert_string_equal(spec.method, "GET");
	assert_null(body);
	assert_null(authorization);
	respond(200, "{}");
	assert_int_equal(answer.outcome, PUBSUB_OK);
	assert_string_equal(answer.body, "{}");
}

/* A pull is held for 90 s, and given up only when that is long over. */
static void
pull_is_waited_for(void **state)
{
	(void) state;
	pubsub_pull(&pubsub, 7, take, &answers);
	assert_string_equal(body, "{\"maxMessages\":7}");
	assert_true(spec.timeout_ms >= 100000);
	assert_int_equal(spec.response_limit, 1000);
	respond(200, "");
}

/* Without the deadline in it, a change of the deadline would give the message back at once. */
static void
deadline_is_always_said(void **state)
{
	static char id[] = "x";
	char *ids[] = {id};

	(void) state;
	acknowledge();
	assert_string_equal(body, "{\"ackIds\":[\"a/\\\"1\",\"b\"]}");
	respond(200, "{}");
	pubsub_modify_ack_deadline(&pubsub, ids, 1, 0, take, &answers);
	assert_string_equal(body, "{\"ackIds\":[\"x\"],\"ackDeadlineSeconds\":0}");
	respond(200, "{}");
	assert_int_equal(answers, 2);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void
status_decides(void **state)
{
	static const struct
	{
		long status;
		const char *body;
		enum pubsub_outcome outcome;
	} cases[] = {
		{0, "", PUBSUB_TRANSIENT},
		{204, "", PUBSUB_OK},
		{302, "", PUBSUB_TRANSIENT},
		{400, "{\"error\": {\"status\": \"INVALID_ARGUMENT\"}}", PUBSUB_INVALID},
		{400, "{\"error\": {\"status\": \"FAILED_PRECONDITION\"}}", PUBSUB_PRECONDITION},
		{400, "<html>", PUBSUB_INVALID},
		{401, "", PUBSUB_UNAUTHENTICATED},
		{403, "", PUBSUB_FORBIDDEN},
		{404, "not found", PUBSUB_NOT_FOUND},
		{409, "", PUBSUB_TRANSIENT},
		{429, "{\"error\": []}", PUBSUB_TRANSIENT},
		{503, "[1]", PUBSUB_TRANSIENT},
		{503, "{\"error\": {\"details\": [1, {\"reason\": 2}, null]}}", PUBSUB_TRANSIENT},
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		acknowledge();
		respond(cases[i].status, cases[i].body);
		assert_int_equal(answer.outcome, cases[i].outcome);
		assert_int_equal(answers, i + 1);
		assert_int_equal(pubsub_id_result(&answer, "b"),
						 cases[i].outcome == PUBSUB_OK ? PUBSUB_ID_DONE : PUBSUB_ID_UNKNOWN);
	}
}

/* The failures may be spread over several details; what none of them lists has succeeded. */
static void
failures_are_told_by_id(void **state)
{
	(void) state;
	acknowledge();
	respond(400, "{\"error\": {\"details\": ["
				 "{\"reason\": \"" HIDDEN
				 "\", \"metadata\": {\"gone\": \"PERMANENT_FAILURE_INVALID_ACK_ID\"}},"
				 "{\"reason\": \"" HIDDEN
				 "\", \"metadata\": {\"early\": \"TRANSIENT_FAILURE_UNORDERED_ACK_ID\","
				 " \"odd\": null, \"odder\": [1]}},"
				 "{\"reason\": \"OTHER\", \"metadata\": {\"done\": \"consumer\"}}]}}");
	assert_int_equal(pubsub_id_result(&answer, "gone"), PUBSUB_ID_INVALID);
	assert_int_equal(pubsub_id_result(&answer, "early"), PUBSUB_ID_AGAIN);
	assert_int_equal(pubsub_id_result(&answer, "odd"), PUBSUB_ID_INVALID);
	assert_int_equal(pubsub_id_result(&answer, "odder"), PUBSUB_ID_INVALID);
	assert_int_equal(pubsub_id_result(&answer, "done"), PUBSUB_ID_DONE);
}

/* A refusal of the caller has metadata as well, and no id of it was acknowledged. */
static void
other_metadata_is_no_success(void **state)
{
	(void) state;
	acknowledge();
	respond(403, "{\"error\": {\"details\": [{\"reason\": \"IAM_PERMISSION_DENIED\","
				 " \"metadata\": {\"permission\": \"x\"}}]}}");
	assert_int_equal(pubsub_id_result(&answer, "b"), PUBSUB_ID_UNKNOWN);
}

static void
pause_that_is_asked_for_is_bounded(void **state)
{
	static const struct
	{
		const char *delay;
		int64_t ms;
	} cases[] = {
		{"1.5s", 1500}, {"0s", 0}, {"1e300s", 600000}, {"nans", 600000}, {"-3s", 600000},
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		char text[128];

		snprintf(text, sizeof(text), "{\"error\": {\"details\": [{\"retryDelay\": \"%s\"}]}}",
				 cases[i].delay);
		acknowledge();
		respond(429, text);
		assert_int_equal(answer.retry_after_ms, cases[i].ms);
	}
}

/* The service says it, or only that it refuses: then the call tells what it takes. */
static void
missing_permission_is_named(void **state)
{
	static const struct
	{
		const char *body;
		const char *error;
	} cases[] = {
		{"", "HTTP 403; missing is the permission pubsub.subscriptions.consume on "
			 "projects/p/subscriptions/s%+"},
		{"{\"error\": {\"status\": \"PERMISSION_DENIED\", \"message\": \"Not so.\"}}",
		 "HTTP 403 PERMISSION_DENIED: Not so.; missing is the permission "
		 "pubsub.subscriptions.consume on projects/p/subscriptions/s%+"},
		{"{\"error\": {\"details\": [{\"reason\": \"IAM_PERMISSION_DENIED\", \"metadata\": "
		 "{\"permission\": \"a.b.c\", \"resource\": \"projects/x\"}}]}}",
		 "HTTP 403; missing is the permission a.b.c on projects/x"},
		{"{\"error\": {\"details\": [{\"reason\": \"USER_PROJECT_DENIED\", \"metadata\": "
		 "{\"consumer\": \"projects/q\"}}]}}",
		 "HTTP 403; missing is the permission serviceusage.services.use on projects/q"},
		{"{\"error\": {\"message\": \"Enable it.\", \"details\": [{\"reason\": "
		 "\"SERVICE_DISABLED\"}]}}",
		 "HTTP 403: Enable it."},
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		acknowledge();
		respond(403, cases[i].body);
		assert_string_equal(error, cases[i].error);
	}
	pubsub_get_subscription(&pubsub, take, &answers);
	respond(403, "");
	assert_string_equal(error, "HTTP 403; missing is the permission pubsub.subscriptions.get on "
							   "projects/p/subscriptions/s%+");
}

/* ---- tokens --------------------------------------------------------------------------------- */

static void
write_token(const char *token)
{
	FILE *file = fopen(token_file, "w");

	assert_non_null(file);
	assert_true(fputs(token, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void
refused_token_is_read_again_once(void **state)
{
	(void) state;
	close(mkstemp(token_file));
	write_token("old");
	config.emulator = false;
	config.token_file = token_file;
	auth_init(&auth, NULL, &config);
	auth_step(&auth, 0);
	assert_true(auth_ready(&auth, 0));
	acknowledge();
	assert_string_equal(authorization, "Authorization: Bearer old");
	write_token("new");
	respond(401, "");
	assert_int_equal(answers, 0);
	assert_string_equal(authorization, "Authorization: Bearer new");
	respond(401, "");
	assert_int_equal(answers, 1);
	assert_int_equal(answer.outcome, PUBSUB_UNAUTHENTICATED);
	assert_int_equal(requests, 2);
	unlink(token_file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_are_percent_encoded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pull_is_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(deadline_is_always_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(status_decides, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failures_are_told_by_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_metadata_is_no_success, set_up, tear_down),
		cmocka_unit_test_setup_teardown(missing_permission_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pause_that_is_asked_for_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused_token_is_read_again_once, set_up, tear_down),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(url);
	free(body);
	free(authorization);
	return failed;
}
