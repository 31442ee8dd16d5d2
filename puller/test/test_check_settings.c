/* SPDX-License-Identifier: PostgreSQL */
/* What the settings of a subscription mean, as the service would send them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_settings.h"

#define DAY INT64_C(86400000)
/* Nothing to complain of, when what is tested comes behind it. */
#define SOUND                                                               \
	"\"topic\":\"projects/p/topics/t\",\"ackDeadlineSeconds\":10,"          \
	"\"retainAckedMessages\":true,\"messageRetentionDuration\":\"604800s\"" \
	",\"expirationPolicy\":{},\"state\":\"ACTIVE\""

static char subscription[] = "projects/p/subscriptions/s";
static char source[] = "s";
static char schema[] = "public";

static struct config config = {
	.subscription = subscription, .source = source, .handler_timeout = 30000};

/* The lines written about a document; to be freed. */
static char *
report(const char *text, int64_t dedup_ms, bool source_known)
{
	struct check check = {.config = &config,
						  .source_known = source_known,
						  .dedup_ms = dedup_ms,
						  .facts = {.schema = schema}};
	struct json_object *document = json_tokener_parse(text);
	char *written = NULL;
	size_t size;
	FILE *out = open_memstream(&written, &size);

	assert_non_null(document);
	check_report_begin(&check.report, out, false);
	check_settings_report(&check, document);
	check_report_end(&check.report);
	fclose(out);
	json_object_put(document);
	return written;
}

static void
expect_with(const char *text, int64_t dedup_ms, const char *part, int problems)
{
	char *written = report(text, dedup_ms, true);
	char last[32] = "no problems\n";

	if (problems > 0)
	{
		snprintf(last, sizeof(last), "%d problem%s\n", problems, problems > 1 ? "s" : "");
	}
	if (strstr(written, part) == NULL || strstr(written, last) == NULL)
	{
		fail_msg("\"%s\" and \"%s\" are not in\n%s", part, last, written);
	}
	free(written);
}

static void
expect(const char *text, const char *part, int problems)
{
	expect_with(text, 0, part, problems);
}

static void
nothing_wrong(void **state)
{
	(void) state;
	expect("{" SOUND "}", "\u2713 subscription         projects/p/subscriptions/s can be read\n",
		   0);
	expect("{" SOUND "}", "\u2713 topic                projects/p/topics/t\n", 0);
	expect("{" SOUND ",\"pushConfig\":{}}", "\u2713 ordering             off", 0);
	expect("{" SOUND ",\"enableMessageOrdering\":true}", "\u2713 ordering             on", 0);
	expect("{" SOUND ",\"enableExactlyOnceDelivery\":true}", "\u2713 exactly-once         on", 0);
	expect("{" SOUND ",\"retryPolicy\":{\"minimumBackoff\":\"5s\",\"maximumBackoff\":\"60s\"}}",
		   "after 5 s to 1 min", 0);
	expect("{" SOUND ",\"retryPolicy\":{}}", "after 10 s to 10 min", 0);
	expect("{" SOUND ",\"filter\":\"attributes.a\"}",
		   "\u00b7 filter               attributes.a:", 0);
}

static void
what_cannot_be_pulled_from(void **state)
{
	(void) state;
	expect("{" SOUND ",\"detached\":true}", "is detached from its topic", 1);
	expect("{" SOUND ",\"pushConfig\":{\"pushEndpoint\":\"https://x\"}}",
		   "\u2717 subscription         projects/p/subscriptions/s delivers by itself (pushConfig)",
		   1);
	expect("{" SOUND ",\"bigqueryConfig\":{\"table\":\"t\"}}", "(bigqueryConfig)", 1);
	expect("{" SOUND ",\"cloudStorageConfig\":{\"bucket\":\"b\"}}", "(cloudStorageConfig)", 1);
	expect("{" SOUND ",\"state\":\"RESOURCE_ERROR\"}", "is in the state RESOURCE_ERROR", 1);
	expect("{" SOUND ",\"topic\":\"_deleted-topic_\"}",
		   "\u2717 topic                it was deleted", 1);
}

/* Only what differs from the default is sent. */
static void
what_is_left_out_is_the_default(void **state)
{
	(void) state;
	expect("{\"topic\":\"projects/p/topics/t\"}", "\u2713 ack deadline         10 s", 2);
	expect("{\"topic\":\"projects/p/topics/t\"}", "\u2713 retention            messages for 7 d",
		   2);
	expect(
		"{\"topic\":\"projects/p/topics/t\"}",
		"\u2717 expiration           deleted with all its messages when nobody has pulled for 31 d "
		"\u2192 gcloud pubsub subscriptions update projects/p/subscriptions/s "
		"--expiration-period=never\n",
		2);
	expect("{\"topic\":\"projects/p/topics/t\"}", "\u2717 retained acks        none", 2);
}

static void
an_emulator_says_less(void **state)
{
	(void) state;
	config.emulator = true;
	expect("{\"topic\":\"projects/p/topics/t\"}", "\u00b7 expiration           the emulator", 1);
	config.emulator = false;
}

static void
what_is_kept(void **state)
{
	char *written;

	(void) state;
	expect("{" SOUND ",\"expirationPolicy\":{\"ttl\":\"86400s\"}}", "nobody has pulled for 1 d", 1);
	expect("{" SOUND ",\"retainAckedMessages\":false}", "\u2717 retained acks", 1);
	expect("{" SOUND
		   ",\"retainAckedMessages\":false,\"topicMessageRetentionDuration\":\"172800s\"}",
		   "\u2713 retained acks        for 2 d", 0);
	expect_with("{" SOUND "}", 45 * DAY, "messages for 7 d, keys for 45 d", 0);
	expect_with("{" SOUND "}", 7 * DAY, "keys for 7 d only", 1);
	expect_with("{" SOUND ",\"topicMessageRetentionDuration\":\"2678400s\"}", 10 * DAY,
				"messages for 31 d, keys for 10 d only", 1);
	written = report("{" SOUND "}", 0, false);
	assert_non_null(strstr(written, "\u00b7 retention"));
	free(written);
}

static void
a_long_deadline_is_told(void **state)
{
	(void) state;
	expect("{" SOUND ",\"ackDeadlineSeconds\":60}", "\u2713 ack deadline         60 s", 0);
	expect("{" SOUND ",\"ackDeadlineSeconds\":600}", "\u00b7 ack deadline         600 s", 0);
}

/* Whatever a member is in truth, nothing breaks. */
static void
other_types_count_as_absent(void **state)
{
	char *written = report("{\"topic\":7,\"ackDeadlineSeconds\":\"x\",\"retryPolicy\":[],"
						   "\"expirationPolicy\":\"\",\"filter\":{},\"detached\":\"true\"}",
						   0, true);

	(void) state;
	assert_non_null(strstr(written, "\u2717 topic"));
	free(written);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_wrong),
		cmocka_unit_test(what_cannot_be_pulled_from),
		cmocka_unit_test(what_is_left_out_is_the_default),
		cmocka_unit_test(an_emulator_says_less),
		cmocka_unit_test(what_is_kept),
		cmocka_unit_test(a_long_deadline_is_told),
		cmocka_unit_test(other_types_count_as_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
