/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "load.h"
#include "memory.h"
#include "option.h"

struct reloading
{
	struct loaded loaded;
	char path[64];
};

static void
begin(struct reloading *reloading, const char *text)
{
	load_clean_environment();
	log_configure(LOG_LOGFMT, LOG_INFO);
	write_file(reloading->path, text, strlen(text));
	LOAD_GOOD(&reloading->loaded, "--config", reloading->path, "--pulls", "5");
	assert_string_equal(reloading->loaded.err, "");
}

/* Writes the file anew, reloads, and returns what was logged. */
static char *
reload_with(struct reloading *reloading, const char *text)
{
	FILE *file = fopen(reloading->path, "w");
	struct capture capture;

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	capture = capture_start(STDERR_FILENO);
	config_reload(&reloading->loaded.config);
	return capture_end(&capture);
}

static void
end(struct reloading *reloading)
{
	unlink(reloading->path);
	unload(&reloading->loaded);
}

static void
expect_line(const char *log, const char *line)
{
	assert_non_null(log);
	if (strstr(log, line) == NULL)
	{
		fail_msg("\"%s\" is not in: %s", line, log);
	}
}

static size_t
count_lines(const char *text)
{
	size_t count = 0;

	for (; *text != '\0'; text++)
	{
		count += *text == '\n';
	}
	return count;
}

static void
test_what_may_change_changes(void **state)
{
	struct reloading reloading;
	const struct config *config = &reloading.loaded.config;
	char *log;

	(void) state;
	begin(&reloading, "batch-size = 10\n");
	log = reload_with(&reloading,
					  "batch-size = 20\nbatch-bytes = 1MB\nbatch-time = 1s\nhandler-timeout = 20s\n"
					  "lock-timeout = 2s\nmax-lease = 2h\ndb-grace = 1s\ngrace = 2s\npulls = 9\n"
					  "log-level = debug\nlog-format = json\n");
	assert_int_equal(config->batch_size, 20);
	assert_int_equal(config->batch_bytes, 1 << 20);
	assert_int_equal(config->batch_time, 1000);
	assert_int_equal(config->handler_timeout, 20000);
	assert_int_equal(config->lock_timeout, 2000);
	assert_int_equal(config->max_lease, 7200000);
	assert_int_equal(config->db_grace, 1000);
	assert_int_equal(config->grace, 2000);
	assert_int_equal(config->pulls, 5); /* the flag still comes before the file */
	assert_int_equal(config->log_level, LOG_DEBUG);
	assert_int_equal(config->log_format, LOG_JSON);
	assert_true(log_wants(LOG_DEBUG));
	expect_line(log, " level=info event=config_changed option=batch_size from=10 to=20\n");
	expect_line(log, " level=info event=config_changed option=lock_timeout from=5s to=2s\n");
	expect_line(log, "\"event\":\"config_reloaded\",\"changed\":10}\n");
	assert_int_equal(count_lines(log), 11);
	free(log);
	end(&reloading);
}

static void
test_what_needs_a_restart_is_told(void **state)
{
	struct reloading reloading;
	char *log;

	(void) state;
	begin(&reloading, "dbname = host=a password=hush1\n");
	log = reload_with(&reloading, "dbname = host=b password=hush2\nworkers = 4\nsource = other\n"
								  "key = message-id\ntake-over = on\n");
	expect_line(log, " level=warning event=config_needs_restart option=workers from=1 to=4\n");
	expect_line(log, " option=source from=" SUBSCRIPTION " to=other\n");
	expect_line(log, " option=key from=attribute:idempotency_key to=message-id\n");
	expect_line(log, " option=take_over from=off to=on\n");
	expect_line(log, " option=dbname\n");
	expect_line(log, " event=config_reloaded changed=0\n");
	assert_null(strstr(log, "hush"));
	assert_int_equal(count_lines(log), 6);
	assert_int_equal(reloading.loaded.config.workers, 1);
	assert_string_equal(reloading.loaded.config.source, SUBSCRIPTION);
	assert_string_equal(reloading.loaded.config.dbname, "host=a password=hush1");
	assert_int_equal(reloading.loaded.config.keys.rule[0].kind, KEY_ATTRIBUTE);
	free(log);
	end(&reloading);
}

static void
test_an_invalid_file_changes_nothing(void **state)
{
	static const char *const bad[][2] = {
		{"batch-size = 20\nworkers = 0\n",
		 ":2: workers: \\\"0\\\" is not a whole number from 1 to 64"},
		{"batch-size = 20\nbatchsize = 3\n", ":2: \\\"batchsize\\\" is not an option"},
		{"batch-size = 20\nlock-timeout = 40s\n", "--lock-timeout is not shorter"},
	};
	struct reloading reloading;
	char *log;

	(void) state;
	begin(&reloading, "batch-size = 10\n");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		log = reload_with(&reloading, bad[i][0]);
		expect_line(log, " level=error event=config_invalid err=");
		expect_line(log, bad[i][1]);
		expect_line(log, " effect=\"nothing was changed\"\n");
		assert_int_equal(count_lines(log), 1);
		assert_int_equal(reloading.loaded.config.batch_size, 10);
		free(log);
	}
	log = reload_with(&reloading, "batch-size = 20\n");
	assert_int_equal(reloading.loaded.config.batch_size, 20);
	free(log);
	end(&reloading);
}

static void
test_a_missing_file_changes_nothing(void **state)
{
	struct reloading reloading;
	struct capture capture;
	char *log;

	(void) state;
	begin(&reloading, "batch-size = 10\n");
	unlink(reloading.path);
	capture = capture_start(STDERR_FILENO);
	config_reload(&reloading.loaded.config);
	log = capture_end(&capture);
	expect_line(log, " event=config_invalid err=\"could not read the configuration file");
	assert_int_equal(reloading.loaded.config.batch_size, 10);
	free(log);
	end(&reloading);
}

/* The loop reads these without asking whether they have moved. */
static void
test_no_text_is_reloadable(void **state)
{
	(void) state;
	for (size_t i = 0; i < option_count; i++)
	{
		if (option_table[i].kind == OPTION_TEXT || option_table[i].kind == OPTION_KEYS)
		{
			assert_false(option_table[i].reloadable);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_may_change_changes),
		cmocka_unit_test(test_what_needs_a_restart_is_told),
		cmocka_unit_test(test_an_invalid_file_changes_nothing),
		cmocka_unit_test(test_a_missing_file_changes_nothing),
		cmocka_unit_test(test_no_text_is_reloadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
