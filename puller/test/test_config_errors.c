/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing.h"
#include "memory.h"

#define HELP_HINT "inbox-puller --help lists the options."
#define UNIT_HINT(example) "The units are ms, s, min and h; for example " example "."
#define SIZE_HINT(example) "The units are B, kB, MB and GB; for example " example "."
#define NAME_HINT "Write its full name, projects/PROJECT/subscriptions/NAME."
#define LEASE_HINT                                                                                \
	"A statement must end before the lease of its messages does, which is extended by 60 s at a " \
	"time."
#define EMPTY_HINT "Give a value or leave the option out."

static void
test_usage(void **state)
{
	static const struct failing cases[] = {
		{{"--frobnicate"}, {0}, "--frobnicate is not an option", HELP_HINT},
		{{"--log-leve1=x"},
		 {0},
		 "--log-leve1 is not an option",
		 "Did you mean --log-level? " HELP_HINT},
		{{"--no-workers"},
		 {0},
		 "--no-workers is not an option",
		 "Did you mean --workers? " HELP_HINT},
		{{"--no-takeover"},
		 {0},
		 "--no-takeover is not an option",
		 "Did you mean --no-take-over? " HELP_HINT},
		{{"--max", "3"}, {0}, "--max is not an option", HELP_HINT},
		{{"-x"}, {0}, "-x is not an option", HELP_HINT},
		{{"--workers"}, {0}, "--workers needs a value", HELP_HINT},
		{{"--take-over=yes"}, {0}, "--take-over takes no value", HELP_HINT},
		{{"orders"}, {0}, "\"orders\" is not expected: every argument is an option", HELP_HINT},
		{{"--pulls", "2", "--", "x"},
		 {0},
		 "\"x\" is not expected: every argument is an option",
		 HELP_HINT},
		{{GOOD, "--json"},
		 {0},
		 "--json is given without --check or --seek",
		 "Add --check; logs are in JSON by --log-format json."},
		{{"--subscription", SUBSCRIPTION, "--shadow", "--as-dead-letters", "--source", "s"},
		 {EMULATOR},
		 "--shadow has nothing to run with --as-dead-letters",
		 "Leave out one of them."},
		{{GOOD, "--yes"}, {0}, "--yes is given without --seek", "Leave it out, or add --seek."},
		{{GOOD, "--seek", "2026-01-31T12:00:00Z", "--check"},
		 {0},
		 "--check and --seek are two things to do",
		 "Give one of them."},
		{{GOOD, "--seek", "yesterday"},
		 {0},
		 "--seek \"yesterday\" is not a time",
		 "Write it in UTC, as 2026-01-31T12:00:00Z, or restore-point to have it worked out from "
		 "the database."},
		{{"--seek", "restore-point"},
		 {EMULATOR},
		 "no subscription is given",
		 "Give --subscription projects/PROJECT/subscriptions/NAME; inbox-puller --help lists the "
		 "options."},
		{{"--check", "--subscription", SUBSCRIPTION, "--source="},
		 {EMULATOR},
		 "--source: the value is empty",
		 EMPTY_HINT},
		{{"--help=pdf"}, {0}, "--help: \"pdf\" is not one of text, ini, man", NULL},
	};

	(void) state;
	EXPECT_ALL(cases);
}

#define NO_CREDENTIALS                                                                            \
	"there are no credentials, and NO_GCE_CHECK says that there is no metadata server",           \
		"Name a file of credentials by --credentials-file or GOOGLE_APPLICATION_CREDENTIALS, or " \
		"run gcloud auth application-default login; a bare access token goes with --token-file, " \
		"and an emulator needs none: name it by PUBSUB_EMULATOR_HOST, without --endpoint."

static void
test_required(void **state)
{
	static const struct failing cases[] = {
		{{NULL},
		 {EMULATOR},
		 "no subscription is given",
		 "Give --subscription projects/PROJECT/subscriptions/NAME; " HELP_HINT},
		{{"--subscription", SUBSCRIPTION},
		 {EMULATOR},
		 "no handler is given",
		 "Give --handler FUNCTION, the SQL function that applies a message."},
		{{GOOD}, {0}, NO_CREDENTIALS},
		{{GOOD, "--endpoint", "http://localhost:8085/"}, {EMULATOR}, NO_CREDENTIALS},
	};

	(void) state;
	EXPECT_ALL(cases);
}

static void
expect_bad_subscription(const char *name, const char *reason)
{
	char *error = memory_format("--subscription \"%s\" is not a subscription: %s", name, reason);
	struct failing failing = {{"--subscription", name}, {EMULATOR}, error, NAME_HINT};

	expect_all(&failing, 1);
	free(error);
}

static void
test_subscription(void **state)
{
	char id[257];
	char *name;

	(void) state;
	expect_bad_subscription("orders", "it is a bare name");
	expect_bad_subscription("projects/acme/topics/orders",
							"it names a topic, and messages come from a subscription to it");
	expect_bad_subscription("/projects/acme/subscriptions/orders",
							"it does not begin with projects/");
	expect_bad_subscription("projects//subscriptions/orders",
							"a project and /subscriptions/ must follow projects/");
	expect_bad_subscription("projects/acme/snapshots/orders",
							"a project and /subscriptions/ must follow projects/");
	expect_bad_subscription("projects/ac me/subscriptions/orders",
							"a project and /subscriptions/ must follow projects/");
	expect_bad_subscription("projects/acme/subscriptions/ab",
							"its last part must have 3 to 255 characters");
	expect_bad_subscription("projects/acme/subscriptions/1ab",
							"its last part must begin with a letter");
	expect_bad_subscription("projects/acme/subscriptions/a/b",
							"its last part may hold letters, digits and - _ . ~ + % only");
	expect_bad_subscription(
		"projects/acme/subscriptions/google",
		"its last part must not begin with \"goog\", which Pub/Sub keeps for itself");
	memset(id, 'a', sizeof(id) - 1);
	id[256] = '\0';
	name = memory_format("projects/acme/subscriptions/%s", id);
	expect_bad_subscription(name, "its last part must have 3 to 255 characters");
	free(name);
}

static void
test_numbers(void **state)
{
	static const struct failing cases[] = {
		{{"--workers", "0"}, {0}, "--workers: \"0\" is not a whole number from 1 to 64", NULL},
		{{"--workers", "65"}, {0}, "--workers: \"65\" is not a whole number from 1 to 64", NULL},
		{{"--workers", "4x"}, {0}, "--workers: \"4x\" is not a whole number from 1 to 64", NULL},
		{{"--workers", "-1"}, {0}, "--workers: \"-1\" is not a whole number from 1 to 64", NULL},
		{{"--workers", " 1"}, {0}, "--workers: \" 1\" is not a whole number from 1 to 64", NULL},
		{{"--workers", "1e1"}, {0}, "--workers: \"1e1\" is not a whole number from 1 to 64", NULL},
		{{"--workers="}, {0}, "--workers: the value is empty", EMPTY_HINT},
		{{"--pulls", "65"}, {0}, "--pulls: \"65\" is not a whole number from 1 to 64", NULL},
		{{"--batch-size", "10001"},
		 {0},
		 "--batch-size: \"10001\" is not a whole number from 1 to 10000",
		 NULL},
		{{"--batch-size", "18446744073709551617"},
		 {0},
		 "--batch-size: \"18446744073709551617\" is not a whole number from 1 to 10000",
		 NULL},
		{{0},
		 {"INBOX_PULLS", "4294967297"},
		 "INBOX_PULLS: \"4294967297\" is not a whole number from 1 to 64",
		 NULL},
	};

	(void) state;
	EXPECT_ALL(cases);
}

static void
test_measures(void **state)
{
	static const struct failing cases[] = {
		{{"--grace", "25"},
		 {0},
		 "--grace: \"25\" is not a whole number with a unit",
		 UNIT_HINT("25s")},
		{{"--grace", "s"},
		 {0},
		 "--grace: \"s\" is not a whole number with a unit",
		 UNIT_HINT("25s")},
		{{"--grace", "0.5s"},
		 {0},
		 "--grace: \"0.5s\" is not a whole number with a unit",
		 UNIT_HINT("25s")},
		{{"--grace", "-1s"},
		 {0},
		 "--grace: \"-1s\" is not a whole number with a unit",
		 UNIT_HINT("25s")},
		{{"--grace", "1S"},
		 {0},
		 "--grace: \"1S\" is not a whole number with a unit",
		 UNIT_HINT("25s")},
		{{"--grace", "1s "},
		 {0},
		 "--grace: \"1s \" is not a whole number with a unit",
		 UNIT_HINT("25s")},
		{{"--grace", "61min"}, {0}, "--grace: \"61min\" is out of the range from 0 to 1h", NULL},
		{{"--grace", "9223372036854775807h"},
		 {0},
		 "--grace: \"9223372036854775807h\" is out of the range from 0 to 1h",
		 NULL},
		{{"--grace", "99999999999999999999s"},
		 {0},
		 "--grace: \"99999999999999999999s\" is out of the range from 0 to 1h",
		 NULL},
		{{"--db-grace", "2h"}, {0}, "--db-grace: \"2h\" is out of the range from 0 to 1h", NULL},
		{{"--handler-timeout", "51s"},
		 {0},
		 "--handler-timeout: \"51s\" is out of the range from 100ms to 50s",
		 LEASE_HINT},
		{{"--handler-timeout", "0"},
		 {0},
		 "--handler-timeout: \"0\" is out of the range from 100ms to 50s",
		 LEASE_HINT},
		{{"--max-lease", "59s"},
		 {0},
		 "--max-lease: \"59s\" is out of the range from 1min to 24h",
		 "A lease is extended by 60 s at a time."},
		{{"--batch-bytes", "1MiB"},
		 {0},
		 "--batch-bytes: \"1MiB\" is not a whole number with a unit",
		 SIZE_HINT("16MB")},
		{{"--batch-bytes", "1kB"},
		 {0},
		 "--batch-bytes: \"1kB\" is out of the range from 64kB to 256MB",
		 NULL},
		{{"--max-response", "8MB"},
		 {0},
		 "--max-response: \"8MB\" is out of the range from 16MB to 1GB",
		 "A message of 10 MB, the greatest there is, takes 14 MB in a response."},
		{{GOOD, "--lock-timeout", "30s"},
		 {EMULATOR},
		 "--lock-timeout is not shorter than --handler-timeout: every long wait for a row would "
		 "end as a slow handler",
		 "Lower --lock-timeout or raise --handler-timeout."},
		{{GOOD, "--handler-timeout", "6s", "--batch-time", "7s"},
		 {EMULATOR},
		 "--batch-time is not shorter than --handler-timeout: batches would grow until they are "
		 "cancelled",
		 "Lower --batch-time or raise --handler-timeout."},
	};

	(void) state;
	EXPECT_ALL(cases);
}

static void
test_words(void **state)
{
	static const struct failing cases[] = {
		{{"--log-format", "xml"}, {0}, "--log-format: \"xml\" is not one of logfmt, json", NULL},
		{{"--log-level", "INFO"},
		 {0},
		 "--log-level: \"INFO\" is not one of debug, info, warning, error",
		 NULL},
		{{0},
		 {"INBOX_TAKE_OVER", "maybe"},
		 "INBOX_TAKE_OVER: \"maybe\" is neither on nor off",
		 NULL},
		{{"--key", "attribute"},
		 {0},
		 "--key: \"attribute\": not a rule; write attribute:NAME, json:/pointer or message-id",
		 NULL},
		{{GOOD, "--source", "\xC3("},
		 {EMULATOR},
		 "--source is not valid UTF-8",
		 "Write the name in UTF-8."},
		{{"--subscription", SUBSCRIPTION, "--handler", "\xFF"},
		 {EMULATOR},
		 "--handler is not valid UTF-8",
		 "Write the function's name in UTF-8."},
		{{GOOD, "--source="}, {EMULATOR}, "--source: the value is empty", EMPTY_HINT},
		{{GOOD, "--dbname", "host=db password=hush-hush dbname"},
		 {EMULATOR},
		 "--dbname is not a connection string libpq can parse; it is not shown, as it may hold a "
		 "password",
		 "Write a database name, keyword = value pairs such as 'host=db1 dbname=ledger', or a "
		 "postgresql:// URI."},
	};
	char source[1026];
	struct failing failing = {{GOOD, "--source", source},
							  {EMULATOR},
							  "--source has 1025 bytes, more than the 1024 allowed",
							  "Choose a shorter name; it is never cut."};

	(void) state;
	EXPECT_ALL(cases);
	memset(source, 's', 1025);
	source[1025] = '\0';
	expect_all(&failing, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usage),		 cmocka_unit_test(test_required),
		cmocka_unit_test(test_subscription), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_measures),	 cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
