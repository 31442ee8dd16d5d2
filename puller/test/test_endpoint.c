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

/* ---- credentials ---------------------------------------------------------------------------- */

#define USER                                                                              \
	"{\"type\": \"authorized_user\", \"client_id\": \"c\", \"client_secret\": \"hush\", " \
	"\"refresh_token\": \"hush\""

static void
expect_foreign(const char *path)
{
	char *error = memory_format("--credentials-file \"%s\" is for the universe u.test, and "
								"https://pubsub.googleapis.com is not in it",
								path);
	struct failing failing = {
		{GOOD, "--credentials-file", path}, {0}, error, "Give --endpoint https://pubsub.u.test."};

	expect_all(&failing, 1);
	free(error);
}

static void
test_authorities(void **state)
{
	static const char *const wrong[] = {"/nonexistent/ca.pem", "/dev/null"};
	static const char *const reason[] = {"No such file or directory", "it is not a regular file"};

	(void) state;
	for (size_t i = 0; i < 2; i++)
	{
		char *error = memory_format("--ca-file \"%s\" cannot be used: %s", wrong[i], reason[i]);
		struct failing failing = {{GOOD, "--ca-file", wrong[i]},
								  {EMULATOR},
								  error,
								  "Name a file with the certificates of the authorities that the "
								  "puller is to trust."};

		expect_all(&failing, 1);
		free(error);
	}
}

static void
test_credentials(void **state)
{
	char user[64];
	char other[64];
	struct failing cases[] = {
		{{GOOD, "--credentials-file", user, "--endpoint", "http://example.com"},
		 {0},
		 "the token would be sent unencrypted to http://example.com",
		 "Use an https:// endpoint; http:// is for this machine only."},
		{{GOOD, "--credentials-file", user, "--token-file", user},
		 {0},
		 "--token-file and --credentials-file are both given",
		 "Leave one of them out."},
		{{GOOD, "--credentials-file", user},
		 {EMULATOR},
		 "--credentials-file and PUBSUB_EMULATOR_HOST are both given, but an emulator takes no "
		 "credentials",
		 "Unset PUBSUB_EMULATOR_HOST to consume the real service, or leave --credentials-file "
		 "out."},
		{{GOOD, "--credentials-file", user},
		 {"GOOGLE_CLOUD_QUOTA_PROJECT", "two words"},
		 "GOOGLE_CLOUD_QUOTA_PROJECT is not a project",
		 "Set it to the id of a project, or unset it."},
	};

	(void) state;
	write_file(user, USER "}", strlen(USER "}"));
	write_file(other, USER ", \"universe_domain\": \"u.test\"}",
			   strlen(USER ", \"universe_domain\": \"u.test\"}"));
	EXPECT_ALL(cases);
	expect_foreign(other);
	EXPECT_ENDPOINT(NULL, "https://pubsub.googleapis.com", false, "--credentials-file", user);
	EXPECT_ENDPOINT(NULL, "https://pubsub.u.test", false, "--credentials-file", other, "--endpoint",
					"https://pubsub.u.test");
	/* The database has a token for them, whatever Pub/Sub gets. */
	EXPECT_ENDPOINT("localhost:1", "http://localhost:1", true, "--credentials-file", user,
					"--db-auth", "gcp-iam");
	EXPECT_ENDPOINT(NULL, "https://pubsub.googleapis.com", false, "--credentials-file", user,
					"--token-file", user, "--db-auth", "gcp-iam");
	unlink(user);
	unlink(other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_endpoint), cmocka_unit_test(test_bad_token_file),
		cmocka_unit_test(test_emulator),	 cmocka_unit_test(test_service_with_a_token),
		cmocka_unit_test(test_credentials),	 cmocka_unit_test(test_authorities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
