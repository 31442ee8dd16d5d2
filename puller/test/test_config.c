/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "load.h"
#include "memory.h"

static int
clean(void **state)
{
	(void) state;
	load_clean_environment();
	log_configure(LOG_LOGFMT, LOG_INFO);
	return 0;
}

static void
expect_contains(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
	{
		fail_msg("\"%s\" is not in: %s", part, text);
	}
}

static void
expect_lacks(const char *text, const char *part)
{
	if (strstr(text, part) != NULL)
	{
		fail_msg("\"%s\" is in: %s", part, text);
	}
}

static void
test_defaults(void **state)
{
	struct loaded loaded;
	const struct config *config = &loaded.config;

	(void) state;
	LOAD_GOOD(&loaded);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.outcome, CONFIG_RUN);
	assert_string_equal(config->subscription, SUBSCRIPTION);
	assert_string_equal(config->handler, "f");
	assert_string_equal(config->source, SUBSCRIPTION);
	assert_int_equal(config->keys.count, 1);
	assert_int_equal(config->keys.rule[0].kind, KEY_ATTRIBUTE);
	assert_string_equal(config->keys.rule[0].argument, "idempotency_key");
	assert_false(config->take_over);
	assert_null(config->token_file);
	assert_int_equal(config->pulls, 8);
	assert_int_equal(config->max_response, 64 << 20);
	assert_int_equal(config->max_lease, 3600000);
	assert_null(config->dbname);
	assert_int_equal(config->workers, 1);
	assert_int_equal(config->handler_timeout, 30000);
	assert_int_equal(config->lock_timeout, 5000);
	assert_int_equal(config->db_grace, 120000);
	assert_int_equal(config->batch_size, 200);
	assert_int_equal(config->batch_bytes, 16 << 20);
	assert_int_equal(config->batch_time, 500);
	assert_int_equal(config->grace, 25000);
	assert_false(config->exit_on_permanent);
	assert_int_equal(config->log_format, LOG_LOGFMT);
	assert_int_equal(config->log_level, LOG_INFO);
	unload(&loaded);
}

static void
test_units_and_words(void **state)
{
	struct loaded loaded;

	(void) state;
	LOAD_GOOD(&loaded, "--grace=1min", "--db-grace", "1 h", "--batch-time", "1ms", "--batch-bytes",
			  "65536B", "--max-response", "1GB", "--take-over", "--exit-on-permanent",
			  "--no-exit-on-permanent", "--log-level", "error", "--workers", "3", "--workers",
			  "64");
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.config.grace, 60000);
	assert_int_equal(loaded.config.db_grace, 3600000);
	assert_int_equal(loaded.config.batch_time, 1);
	assert_int_equal(loaded.config.batch_bytes, 65536);
	assert_int_equal(loaded.config.max_response, 1 << 30);
	assert_true(loaded.config.take_over);
	assert_false(loaded.config.exit_on_permanent);
	assert_int_equal(loaded.config.log_level, LOG_ERROR);
	assert_int_equal(loaded.config.workers, 64); /* the last flag counts */
	unload(&loaded);
}

/* ---- precedence --------------------------------------------------------------------------- */

static void
test_flag_before_environment_before_file(void **state)
{
	static const char text[] = "pulls = 2\nworkers = 2\nbatch-size = 2\n[inbox-puller]\n"
							   "take-over = yes\n";
	struct loaded loaded;
	char path[64];

	(void) state;
	write_file(path, text, strlen(text));
	setenv("INBOX_CONFIG", "/nonexistent", 1);
	setenv("INBOX_WORKERS", "3", 1);
	setenv("INBOX_BATCH_SIZE", "3", 1);
	setenv("INBOX_GRACE", "", 1);
	LOAD_GOOD(&loaded, "--batch-size", "4", "--config", path);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.config.pulls, 2);
	assert_int_equal(loaded.config.workers, 3);
	assert_int_equal(loaded.config.batch_size, 4);
	assert_int_equal(loaded.config.grace, 25000);
	assert_true(loaded.config.take_over);
	unload(&loaded);

	setenv("INBOX_CONFIG", path, 1);
	setenv("INBOX_TAKE_OVER", "0", 1);
	LOAD_GOOD(&loaded);
	assert_int_equal(loaded.config.pulls, 2);
	assert_false(loaded.config.take_over);
	unload(&loaded);
	unlink(path);
}

/* The rules, separated by spaces. */
static void
expect_keys(const struct loaded *loaded, const char *expected)
{
	char *text = memory_copy_text("");

	assert_string_equal(loaded->err, "");
	for (size_t i = 0; i < loaded->config.keys.count; i++)
	{
		char *rule = key_rule_text(&loaded->config.keys.rule[i]);
		char *longer = memory_format("%s%s%s", text, i > 0 ? " " : "", rule);

		free(rule);
		free(text);
		text = longer;
	}
	assert_string_equal(text, expected);
	free(text);
}

static void
test_a_list_replaces_the_list_below(void **state)
{
	static const char text[] = "key = attribute:a, attribute:b\n  json:/c\nkey = message-id\n";
	struct loaded loaded;
	char path[64];

	(void) state;
	write_file(path, text, strlen(text));
	LOAD_GOOD(&loaded, "--config", path);
	expect_keys(&loaded, "attribute:a attribute:b json:/c message-id");
	unload(&loaded);
	setenv("INBOX_KEY", "attribute:e,\n json:/f ,", 1);
	LOAD_GOOD(&loaded, "--config", path);
	expect_keys(&loaded, "attribute:e json:/f");
	unload(&loaded);
	LOAD_GOOD(&loaded, "--config", path, "--key", "attribute:g,h", "--key=json:/i");
	expect_keys(&loaded, "attribute:g,h json:/i");
	unload(&loaded);
	unlink(path);
}

static void
test_misspelt_variables_are_told(void **state)
{
	struct loaded loaded;

	(void) state;
	setenv("INBOX_WORKER", "4", 1);
	setenv("INBOX_SERVICE_HOST", "10.0.0.1", 1);
	setenv("INBOX_PORT_80_TCP", "tcp://10.0.0.1:80", 1);
	LOAD_GOOD(&loaded);
	assert_int_equal(loaded.outcome, CONFIG_RUN);
	assert_string_equal(loaded.err, "inbox-puller: warning: INBOX_WORKER is not read: did you mean "
									"INBOX_WORKERS?\n");
	unload(&loaded);
}

/* ---- the file ----------------------------------------------------------------------------- */

static void
expect_file_refused(const char *text, size_t size, const char *fact, const char *hint)
{
	struct loaded loaded;
	char path[64];
	char *expected;

	write_file(path, text, size);
	expected = memory_format("inbox-puller: error: %s:%s\n%s%s%s", path, fact,
							 hint != NULL ? "inbox-puller: hint: " : "", hint != NULL ? hint : "",
							 hint != NULL ? "\n" : "");
	LOAD_GOOD(&loaded, "--config", path);
	assert_string_equal(loaded.err, expected);
	assert_int_equal(loaded.outcome, CONFIG_BAD);
	unload(&loaded);
	free(expected);
	unlink(path);
}

#define EXPECT_REFUSED(text, fact, hint) \
	expect_file_refused((text), sizeof(text) - 1, (fact), (hint))

static void
test_bad_files(void **state)
{
	char line[9000];

	(void) state;
	EXPECT_REFUSED("\n# c\nworker = 1\n", "3: \"worker\" is not an option",
				   "Did you mean \"workers\"?");
	EXPECT_REFUSED("zzz = 1\n", "1: \"zzz\" is not an option",
				   "inbox-puller --help lists the options.");
	EXPECT_REFUSED("config = x\n", "1: \"config\" is not an option",
				   "inbox-puller --help lists the options.");
	EXPECT_REFUSED("[pgbouncer]\nworkers = 1\n", "2: the section [pgbouncer] is not known",
				   "Options stand before any section or in [inbox-puller].");
	EXPECT_REFUSED("workers\npulls = x\n", "1: the line is neither a [section] nor name = value",
				   "Comments begin with # or ;.");
	EXPECT_REFUSED("workers = 1\npulls = 0 ; none\n",
				   "2: pulls: \"0\" is not a whole number from 1 to 64", NULL);
	EXPECT_REFUSED("workers = 1\npulls = 1\nworkers = 2\n",
				   "3: \"workers\" was given on line 1 already", "Remove one of the two.");
	EXPECT_REFUSED("workers = 1\n pulls = 1\n",
				   "2: the line begins with a space and so continues \"workers\" of line 1, which "
				   "takes one value",
				   "Remove the space.");
	EXPECT_REFUSED("workers =\n", "1: workers: the value is empty",
				   "Give a value or leave the option out.");
	EXPECT_REFUSED("key = attribute:a\n  b\n",
				   "2: key: \"b\": not a rule; write attribute:NAME, json:/pointer or message-id",
				   NULL);
	EXPECT_REFUSED("handler = f\0g\n", "1: the line holds a NUL byte", NULL);
	memset(line, 'x', sizeof(line));
	memcpy(line, "source = ", 9);
	expect_file_refused(line, sizeof(line), "1: the line is longer than 8190 bytes",
						"Shorten it, or give the value as a flag or in the environment.");
}

static void
test_a_long_line_is_read_whole(void **state)
{
	struct loaded loaded;
	char path[64];
	char *line;
	char source[1025];

	(void) state;
	memset(source, 's', 1024);
	source[1024] = '\0';
	line = memory_format("\xEF\xBB\xBFsource: %s", source);
	write_file(path, line, strlen(line));
	LOAD_GOOD(&loaded, "--config", path);
	assert_string_equal(loaded.err, "");
	assert_string_equal(loaded.config.source, source);
	unload(&loaded);
	unlink(path);
	free(line);
}

static void
test_unreadable_files(void **state)
{
	struct loaded loaded;

	(void) state;
	LOAD_GOOD(&loaded, "--config", "/nonexistent/puller.ini");
	assert_string_equal(loaded.err,
						"inbox-puller: error: could not read the configuration file "
						"\"/nonexistent/puller.ini\": No such file or directory\n"
						"inbox-puller: hint: Correct --config or INBOX_CONFIG, or the file's "
						"rights.\n");
	unload(&loaded);
	LOAD_GOOD(&loaded, "--config", "/");
	expect_contains(loaded.err, "could not read the configuration file \"/\": Is a directory\n");
	unload(&loaded);
}

/* ---- the log ------------------------------------------------------------------------------ */

static void
expect_logged(const char *dbname, const char *expected)
{
	struct loaded loaded;
	struct capture capture;
	char *text;

	LOAD_GOOD(&loaded, "--dbname", dbname);
	assert_string_equal(loaded.err, "");
	capture = capture_start(STDERR_FILENO);
	config_log(&loaded.config);
	text = capture_end(&capture);
	expect_contains(text, " level=info event=config subscription=" SUBSCRIPTION " handler=f ");
	expect_contains(text, " handler_timeout=30s ");
	expect_contains(text, " emulator=on");
	expect_contains(text, expected);
	expect_lacks(text, "hush");
	expect_lacks(text, "fields_left_out");
	free(text);
	unload(&loaded);
}

static void
test_secrets_are_not_logged(void **state)
{
	(void) state;
	expect_logged("ledger", " db_name=ledger\n");
	expect_logged("host=db1 port=6543 user=app password=hush dbname=ledger",
				  " db_user=app db_name=ledger db_host=db1 db_port=6543\n");
	expect_logged("postgresql://app:hush@db1/ledger?sslpassword=hush",
				  " db_user=app db_name=ledger db_host=db1\n");
	expect_logged("dbname=postgresql://app:hush@db1/x user=app", " db_user=app\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_defaults, clean),
		cmocka_unit_test_setup(test_units_and_words, clean),
		cmocka_unit_test_setup(test_flag_before_environment_before_file, clean),
		cmocka_unit_test_setup(test_a_list_replaces_the_list_below, clean),
		cmocka_unit_test_setup(test_misspelt_variables_are_told, clean),
		cmocka_unit_test_setup(test_bad_files, clean),
		cmocka_unit_test_setup(test_a_long_line_is_read_whole, clean),
		cmocka_unit_test_setup(test_unreadable_files, clean),
		cmocka_unit_test_setup(test_secrets_are_not_logged, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
