/* SPDX-License-Identifier: PostgreSQL */
/* The life of a token: when it is renewed, how long the old one is kept, what a refusal does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "auth.h"
#include "clock.h"
#include "load.h"
#include "log.h"
#include "memory.h"

#define S INT64_C(1000)

static int64_t now_ms;
static struct http_spec spec; /* of the request under way */
static char *url;
static int requests;
static int errors; /* events of this level */
static int warnings;
static struct auth auth;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
void __wrap_http_start(struct http *http, const struct http_spec *sent);
void __wrap_log_event(enum log_level level, const char *event, ...);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void) clock;
	*time = (struct timespec){.tv_sec = now_ms / 1000, .tv_nsec = now_ms % 1000 * 1000000};
	return 0;
}

void
__wrap_http_start(struct http *http, const struct http_spec *sent)
{
	(void) http;
	requests++;
	spec = *sent;
	free(url);
	url = memory_copy_text(sent->url);
}

void
__wrap_log_event(enum log_level level, const char *event, ...)
{
	(void) event;
	errors += level == LOG_ERROR;
	warnings += level == LOG_WARNING;
}

static void
respond(long status, const char *body)
{
	struct http_response response = {
		.status = status, .body = body, .size = strlen(body), .sent_ms = now_ms};

	spec.callback(spec.context, &response);
}

static void
step(int64_t ms)
{
	now_ms += ms;
	auth_step(&auth, now_ms);
}

/* The metadata server is asked who it is first. */
static void
give(const char *token, int seconds)
{
	char body[128];

	snprintf(body, sizeof(body), "{\"access_token\": \"%s\", \"expires_in\": %d}", token, seconds);
	assert_non_null(strstr(url, "/email"));
	respond(200, "robot@p");
	assert_non_null(strstr(url, "/token?scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fpubsub"));
	respond(200, body);
}

static void
expect_token(const char *token)
{
	char header[128];

	snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
	assert_string_equal(auth_header(&auth), header);
}

static int
set_up(void **state)
{
	static const struct config config = {0};

	(void) state;
	load_clean_environment();
	unsetenv("NO_GCE_CHECK");
	now_ms = 1000 * S;
	requests = errors = warnings = 0;
	auth_init(&auth, NULL, &config);
	return 0;
}

static int
tear_down(void **state)
{
	(void) state;
	if (auth.fetching)
	{
		spec.dropped(spec.context);
	}
	auth_free(&auth);
	return 0;
}

static void
is_renewed_before_it_ends(void **state)
{
	(void) state;
	step(0);
	assert_false(auth_ready(&auth, now_ms));
	assert_int_equal(auth_deadline(&auth), CLOCK_NEVER);
	give("one", 3600);
	assert_true(auth_ready(&auth, now_ms));
	expect_token("one");
	assert_string_equal(auth_kind(&auth), "metadata_server");
	assert_string_equal(auth_account(&auth), "robot@p");
	assert_int_equal(auth_deadline(&auth), now_ms + 3375 * S);
	step(3375 * S - 1);
	assert_int_equal(requests, 2);
	step(1);
	assert_int_equal(requests, 3);
	/* The old one is used meanwhile, and asked for once. */
	step(100 * S);
	assert_int_equal(requests, 3);
	expect_token("one");
	assert_true(auth_ready(&auth, now_ms));
	give("two", 3600);
	expect_token("two");
	assert_int_equal(auth.version, 2);
	assert_int_equal(errors + warnings, 0);
}

static void
old_one_is_kept_while_it_is_good(void **state)
{
	int64_t last = 0;

	(void) state;
	step(0);
	give("one", 3600);
	step(3375 * S);
	for (int i = 0; i < 5; i++)
	{
		int64_t pause;

		respond(503, "");
		respond(503, "");
		pause = auth_deadline(&auth) - now_ms;
		assert_in_range(pause, 800 << i, 1200 << i);
		assert_true(pause > last);
		last = pause;
		assert_true(auth_ready(&auth, now_ms));
		step(pause);
	}
	expect_token("one");
	assert_int_equal(warnings, 5);
	step(225 * S);
	assert_false(auth_ready(&auth, now_ms));
	assert_false(auth_is_hopeless(&auth, now_ms));
	give("two", 3600);
	assert_true(auth_ready(&auth, now_ms));
	assert_int_equal(errors, 0);
}

/* The metadata server may give one that is about to end, again and again. */
static void
short_ones_make_no_storm(void **state)
{
	(void) state;
	step(0);
	give("one", 200);
	assert_int_equal(auth_deadline(&auth), now_ms + 30 * S);
	step(30 * S);
	give("one", 170);
	assert_int_equal(auth.version, 1);
	step(30 * S);
	give("two", 4);
	assert_int_equal(auth_deadline(&auth), now_ms + 2 * S);
	step(2 * S);
	give("three", 0);
	assert_int_equal(auth_deadline(&auth), now_ms + S);
}

static void
failure_that_stays_is_told(void **state)
{
	(void) state;
	step(0);
	respond(404, "");
	respond(404, "");
	assert_int_equal(errors, 1);
	assert_true(auth_is_hopeless(&auth, now_ms));
	step(2 * S);
	give("one", 3600);
	assert_false(auth_is_hopeless(&auth, now_ms));
}

/* ---- refusals ------------------------------------------------------------------------------- */

static int renewed;
static int in_vain;
static int dropped;

static void
take(void *context, bool news)
{
	assert_ptr_equal(context, &renewed);
	renewed += news;
	in_vain += !news;
}

static void
drop(void *context)
{
	assert_ptr_equal(context, &renewed);
	dropped++;
}

static void
refuse(unsigned version)
{
	auth_refused(&auth, version, take, drop, &renewed);
}

static void
refused_one_is_renewed_once(void **state)
{
	(void) state;
	renewed = in_vain = 0;
	step(0);
	give("one", 3600);
	requests = 0;
	refuse(1);
	refuse(1);
	assert_int_equal(requests, 1);
	assert_int_equal(renewed + in_vain, 0);
	give("two", 3600);
	assert_int_equal(renewed, 2);
	/* A straggler finds it done. */
	refuse(1);
	assert_int_equal(renewed, 3);
	assert_int_equal(requests, 2);
	/* The new one is refused as well: not at once again. */
	refuse(2);
	assert_int_equal(in_vain, 1);
	assert_int_equal(requests, 2);
	step(2 * S);
	refuse(2);
	assert_int_equal(requests, 3);
	give("two", 3600);
	assert_int_equal(in_vain, 2);
	/* Nor soon. */
	step(S);
	refuse(2);
	assert_int_equal(in_vain, 3);
	assert_int_equal(requests, 4);
}

static void
failed_renewal_answers_who_waits(void **state)
{
	(void) state;
	renewed = in_vain = 0;
	step(0);
	give("one", 3600);
	refuse(1);
	respond(0, "");
	assert_int_equal(in_vain, 1);
	expect_token("one");
}

static void
waiters_are_dropped_at_the_end(void **state)
{
	(void) state;
	dropped = 0;
	step(0);
	give("one", 3600);
	refuse(1);
	spec.dropped(spec.context);
	auth_free(&auth);
	assert_int_equal(dropped, 1);
	set_up(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(is_renewed_before_it_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(old_one_is_kept_while_it_is_good, set_up, tear_down),
		cmocka_unit_test_setup_teardown(short_ones_make_no_storm, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failure_that_stays_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused_one_is_renewed_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failed_renewal_answers_who_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(waiters_are_dropped_at_the_end, set_up, tear_down),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(url);
	return failed;
}
