/* SPDX-License-Identifier: PostgreSQL */
#include "seek.h"

#include <stdlib.h>
#include <string.h>

#include "check_settings.h"
#include "clock.h"
#include "memory.h"
#include "timestamp.h"

#define NONE INT64_MIN
/* What is about to fall out of the retention would be gone before it is delivered. */
#define RETENTION_SPARE_US INT64_C(60000000)

/* ---- the database --------------------------------------------------------------------------- */

/* The time to seek to, or NONE. */
static int64_t
find_time(struct check *check)
{
	struct seek_point point;
	int64_t to;

	check_report_group(&check->report, "Database");
	if (!check_connection(check) || !check_inbox(check))
	{
		return NONE;
	}
	check_report_group(&check->report, "Time");
	if (!seek_point_read(check, &point))
	{
		return NONE;
	}
	if (!timestamp_parse(check->config->seek, &to))
	{
		to = point.moved ? point.seek_to : NONE;
	}
	seek_point_report(check, &point, to);
	seek_point_free(&point);
	return to;
}

/* ---- the subscription ----------------------------------------------------------------------- */

static void
judge_retention(struct check *check, struct json_object *subscription, int64_t to)
{
	int64_t retained = check_settings_retained(subscription);
	int64_t oldest = clock_real_us() - retained * 1000;
	char text[TIMESTAMP_SIZE];
	char *time = check_time(retained);

	(void) timestamp_format(oldest + RETENTION_SPARE_US, text);
	if (retained == 0)
	{
		check_report_problem(
			&check->report, "retained acks",
			memory_format("%s keeps no acknowledged messages: there is nothing to go back to",
						  check->config->subscription),
			memory_format("have the producers publish again what they sent since then, which is "
						  "safe; and for the next time: gcloud pubsub subscriptions update %s "
						  "--retain-acked-messages --message-retention-duration=31d",
						  check->config->subscription));
	}
	else if (to < oldest)
	{
		check_report_problem(
			&check->report, "retained acks",
			memory_format("for %s: what was published before %s is gone", time, text),
			memory_format("--seek %s, and have the producers publish again what is older", text));
	}
	else
	{
		check_report_ok(&check->report, "retained acks", memory_format("for %s", time));
	}
	free(time);
}

static void
judge_subscription(struct check *check, struct pubsub *pubsub, int64_t to)
{
	struct check_answer answer;

	pubsub_get_subscription(pubsub, check_take_answer, check_answer_new(&answer));
	check_await_answer(check, &answer);
	if (answer.outcome == PUBSUB_OK && answer.document != NULL)
	{
		judge_retention(check, answer.document, to);
	}
	else
	{
		check_report_problem(
			&check->report, "subscription",
			memory_format("%s cannot be read, and whether it keeps acknowledged messages is not "
						  "known: %s",
						  check->config->subscription,
						  answer.error != NULL ? answer.error : "no answer"),
			check_remedy(answer.outcome == PUBSUB_FORBIDDEN
							 ? "seeking takes roles/pubsub.viewer as well, for this once"
							 : pubsub_remedy(answer.outcome, answer.status)));
	}
	check_answer_free(&answer);
}

static void
seek(struct check *check, struct pubsub *pubsub, int64_t to)
{
	struct check_answer answer;
	char text[TIMESTAMP_SIZE];

	pubsub_seek(pubsub, timestamp_format(to, text), check_take_answer, check_answer_new(&answer));
	check_await_answer(check, &answer);
	if (answer.outcome == PUBSUB_OK)
	{
		check_report_ok(&check->report, "seek",
						memory_copy_text("done: what was published since comes again, the first "
										 "of it within a minute"));
	}
	else
	{
		check_report_problem(&check->report, "seek",
							 memory_format("not done, or not known to be: %s",
										   answer.error != NULL ? answer.error : "no answer"),
							 memory_copy_text("do it again: a second seek to the same time does "
											  "no harm"));
	}
	check_answer_free(&answer);
}

/* True when all is well and it was not done, as nobody has said so. */
static bool
seek_subscription(struct check *check, struct auth *auth, int64_t to)
{
	struct pubsub pubsub;
	bool shown;

	pubsub_init(&pubsub, check->http, auth, check->config);
	judge_subscription(check, &pubsub, to);
	shown = check->report.problems == 0 && !check->config->seek_yes;
	if (shown)
	{
		check_report_note(&check->report, "seek", memory_copy_text("not done: --yes does it"));
	}
	else if (check->report.problems == 0)
	{
		seek(check, &pubsub, to);
	}
	else
	{
		check_report_note(&check->report, "seek", memory_copy_text("not done"));
	}
	pubsub_free(&pubsub);
	return shown;
}

int
seek_run(const struct config *config, FILE *out)
{
	struct check check;
	struct auth auth;
	bool shown = false;
	int64_t to;
	int status;

	check_begin(&check, &auth, config, out);
	to = find_time(&check);
	check_report_group(&check.report, "Pub/Sub");
	if (to == NONE)
	{
		check_report_note(&check.report, "seek", memory_copy_text("not done"));
	}
	else if (check_credentials(&check, &auth))
	{
		shown = seek_subscription(&check, &auth, to);
	}
	status = check_end(&check, &auth);
	return shown ? SEEK_SHOWN : status;
}
