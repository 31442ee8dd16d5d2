/* SPDX-License-Identifier: PostgreSQL */
#include <errno.h>
#include <sys/stat.h>

#include "failing.h"

#define URL_HINT                                                                             \
	"Write a scheme and a host, as in https://europe-west1-pubsub.googleapis.com; no user, " \
	"password, query or fragment."

static void
test_bad_endpoint(void **state)
{
	static const char *const bad[] = {
		"pubsub.googleapis.com",	"ftp://pubsub.googleapis.com", "https://",
		"https://example.com/?a=b", "https://example.com/#part",
	};
	static const struct failing cases[] = {
		{{GOOD, "--endpoint", "https://user:hush@example.com"},
		 {0},
		 "--endpoint: \"(not shown)\" is not a plain http:// or https:// address",
		 URL_HINT},
		{{GOOD},
		 {"PUBSUB_EMULATOR_HOST", "local host"},
		 "PUBSUB_EMULATOR_HOST: \"http://local host\" is not a plain http:// or https:// address",
		 "Write HOST:PORT, as in localhost:8085."},
		{{GOOD, "--token-file", "/dev/null"},
		 {EMULATOR},
		 "--token-file and PUBSUB_EMULATOR_HOST are both given, but an emulator takes no "
		 "credentials",
		 "Unset PUBSUB_EMULATOR_HOST to consume the real service, or leave --token-file out."},
	};

	(void) state;
	EXPECT_ALL(cases);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		char *error =
			memory_format("--endpoint: \"%s\" is not a plain http:// or https:// address", bad[i]);
		struct failing failing = {{GOOD, "--endpoint", bad[i]}, {0}, error, URL_HINT};

		expect_all(&failing, 1);
		free(error);
	}
}

static void
expect_bad_token(const char *path, const char *reason)
{
	char *error = memory_format("--token-file \"%s\" cannot be used: %s", path, reason);
	struct failing failing = {{GOOD, "--token-file", path},
							  {0},
							  error,
							  "Put an access token into it that the puller may read."};

	expect_all(&failing, 1);
	free(error);
}

static void
test_bad_token_file(void **state)
{
	static const char *const remote[] = {"http://example.com", "http://128.0.0.1:80",
										 "http://127.0.0.1.example.com", "http://[::2]"};
	char path[64];

	(void) state;
	expect_bad_token("/nonexistent/token", strerror(ENOENT));
	expect_bad_token("/tmp", "it is not a regular file");
	expect_bad_token("/dev/null", "it is not a regular file");
	write_file(path, " \n", 2);
	expect_bad_token(path, "it is empty");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_bad_token(path, "it is not a regular file");
	unlink(path);
	write_file(path, "hush-hush\n", 10);
	for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
	{
		char *error = memory_format("the token would be sent unencrypted to %s", remote[i]);
		struct failing failing = {{GOOD, "--token-file", path, "--endpoint", remote[i]},
								  {0},
								  error,
								  "Use an https:// endpoint; http:// is for this machine only."};

		expect_all(&failing, 1);
		free(error);
	}
	unlink(path);
}

/* What endpoint and emulator are settled to. */
static void
expect_endpoint(const char *const *arguments, const char *variable, const char *endpoint,
				bool emulator)
{
	struct loaded loaded;

	load_clean_environment();
	if (variable != NULL)
	{
		setenv("PUBSUB_EMULATOR_HOST", variable, 1);
	}
	load(&loaded, arguments);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.outcome, CONFIG_RUN);
	assert_string_equal(loaded.config.endpoint, endpoint);
	assert_int_equal(loaded.config.emulator, emulator);
	unload(&loaded);
}

#define EXPECT_ENDPOINT(variable, endpoint, emulator, ...) \
	expect_endpoint((const char *const[]){GOOD, ##__VA_ARGS__, NULL}, variable, endpoint, emulator)

static void
test_emulator(void **state)
{
	(void) state;
	EXPECT_ENDPOINT("localhost:8085", "http://localhost:8085", true);
	EXPECT_ENDPOINT("[::1]:8085", "http://[::1]:8085", true);
	EXPECT_ENDPOINT("http://emulator:8085/", "http://emulator:8085", true);
	EXPECT_ENDPOINT("https://emulator", "https://emulator", true);
}

static void
test_service_with_a_token(void **state)
{
	static const char *const local[] = {"http://localhost:1", "http://127.0.0.1:1",
										"http://127.9.8.7", "http://[::1]:1"};
	char path[64];

	(void) state;
	write_file(path, "hush-hush\n", 10);
	EXPECT_ENDPOINT(NULL, "https://pubsub.googleapis.com", false, "--token-file", path);
	EXPECT_ENDPOINT("", "https://pubsub.googleapis.com", false, "--token-file", path);
	EXPECT_ENDPOINT(NULL, "https://example.com/base", false, "--token-file", path, "--endpoint",
					"https://example.com/base//");
	/* The option comes before the emulator's variable. */
	EXPECT_ENDPOINT("localhost:8085", "https://example.com", false, "--token-file", path,
					"--endpoint", "https://example.com");
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
	{
		EXPECT_ENDPOINT(NULL, local[i], false, "--token-file", path, "--endpoint", local[i]);
	}
	unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_endpoint),
		cmocka_unit_test(test_bad_token_file),
		cmocka_unit_test(test_emulator),
		cmocka_unit_test(test_service_with_a_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
