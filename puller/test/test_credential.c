/* SPDX-License-Identifier: PostgreSQL */
/* Files of credentials: what each kind must hold, what is refused, and where they are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>


#include "credential_file.h"
#include "key_pair.h"
#include "load.h"
#include "memory.h"

#define HANDMADE "Make the file anew; it is not meant to be written by hand."
#define SUPPORTED                                                                          \
	"Supported are service_account, authorized_user, impersonated_service_account, and "   \
	"external_account with a file or a url as its source; without any file, the metadata " \
	"server of Google Cloud is asked."
#define USER                                                                              \
	"{\"type\": \"authorized_user\", \"client_id\": \"c\", \"client_secret\": \"hush\", " \
	"\"refresh_token\": \"hush\"}"
#define IMPERSONATION                                                          \
	"\"service_account_impersonation_url\": \"https://iam.test/v1/projects/-/" \
	"serviceAccounts/me@p.test:generateAccessToken\""
#define EXTERNAL                                                                          \
	"\"type\": \"external_account\", \"audience\": \"//iam/a\", \"subject_token_type\": " \
	"\"jwt\""

static void
accept(const char *text, enum credential_kind kind, const char *account)
{
	struct fault fault = {NULL, NULL};
	struct credential *credential = credential_parse(text, "the file", &fault);

	assert_null(fault.fact);
	assert_non_null(credential);
	assert_int_equal(credential->kind, kind);
	assert_string_equal(credential->place, "the file");
	if (account == NULL)
	{
		assert_null(credential->account);
	}
	else
	{
		assert_string_equal(credential->account, account);
	}
	credential_free(credential);
}

static void
kinds_are_told_apart(void **state)
{
	char *key = memory_format("{\"type\": \"service_account\", \"client_email\": \"robot@p\", "
							  "\"private_key\": %s}",
							  key_pair_quoted());

	(void) state;
	accept(key, CREDENTIAL_SERVICE_ACCOUNT, "robot@p");
	accept(USER, CREDENTIAL_USER, NULL);
	accept("{\"type\": \"authorized_user\", \"client_id\": \"c\", \"client_secret\": \"s\", "
		   "\"refresh_token\": \"r\", \"account\": \"jo@p\"}",
		   CREDENTIAL_USER, "jo@p");
	accept("{\"type\": \"impersonated_service_account\", " IMPERSONATION
		   ", \"source_credentials\": " USER "}",
		   CREDENTIAL_IMPERSONATED, "me@p.test");
	accept("{" EXTERNAL ", \"credential_source\": {\"file\": \"/f\"}}", CREDENTIAL_EXTERNAL,
		   "//iam/a");
	accept("{" EXTERNAL ", " IMPERSONATION
		   ", \"credential_source\": {\"url\": \"http://169.254.169.254/t\", \"headers\": "
		   "{\"Metadata\": \"True\"}, \"format\": {\"type\": \"json\", "
		   "\"subject_token_field_name\": \"value\"}}}",
		   CREDENTIAL_EXTERNAL, "me@p.test");
	accept("{\"type\": \"external_account_authorized_user\", \"client_id\": \"c\", "
		   "\"client_secret\": \"s\", \"refresh_token\": \"r\"}",
		   CREDENTIAL_EXTERNAL_USER, NULL);
	free(key);
}

static const struct bad
{
	const char *text;
	const char *fact;
	const char *remedy;
} bad_files[] = {
	{"ya29.hush", "it is not a JSON object",
	 "Name a file of credentials as Google's tools write it; a bare access token goes with "
	 "--token-file."},
	{"[1]", "it is not a JSON object",
	 "Name a file of credentials as Google's tools write it; a bare access token goes with "
	 "--token-file."},
	{"{}", "it has no \"type\"", SUPPORTED},
	{"{\"type\": \"gdch_service_account\"}",
	 "its type is gdch_service_account, which is not supported", SUPPORTED},
	{"{\"type\": \"metadata_server\"}", "its type is metadata_server, which is not supported",
	 SUPPORTED},
	{"{\"type\": \"authorized_user\", \"client_id\": \"c\", \"client_secret\": \"\"}",
	 "its type is authorized_user and it has no \"client_secret\"", HANDMADE},
	{"{\"type\": \"service_account\", \"client_email\": \"c\", \"private_key\": \"hush\"}",
	 "its \"private_key\" is not an RSA key in PEM",
	 "Create a new key of the service account, and take its file as it is."},
	{"{\"type\": \"authorized_user\", \"client_id\": \"c\", \"client_secret\": \"hush\", "
	 "\"refresh_token\": \"hush\", \"token_uri\": \"http://oauth2.test/\"}",
	 "secrets would be sent unencrypted to its \"token_uri\"",
	 "It must be an https:// address; http:// is for this machine only."},
	{"{\"type\": \"impersonated_service_account\", " IMPERSONATION "}",
	 "it has no \"source_credentials\"", HANDMADE},
	{"{\"type\": \"impersonated_service_account\", " IMPERSONATION
	 ", \"source_credentials\": {\"type\": \"impersonated_service_account\", " IMPERSONATION
	 ", \"source_credentials\": " USER "}}",
	 "its source is itself impersonated", "Name the accounts in between in \"delegates\"."},
	{"{" EXTERNAL ", \"credential_source\": {\"executable\": {\"command\": \"hush\"}}}",
	 "its type is external_account with a source by \"executable\", which is not supported",
	 SUPPORTED},
	{"{" EXTERNAL ", \"credential_source\": {\"environment_id\": \"aws1\", \"url\": \"http://x\"}}",
	 "its type is external_account with a source by \"environment_id\", which is not supported",
	 SUPPORTED},
	{"{" EXTERNAL ", \"credential_source\": {\"certificate\": {}}}",
	 "its type is external_account with a source by \"certificate\", which is not supported",
	 SUPPORTED},
	{"{" EXTERNAL "}", "its \"credential_source\" names neither a file nor a url", SUPPORTED},
	{"{" EXTERNAL ", \"credential_source\": {\"url\": \"file:///etc/passwd\"}}",
	 "the url of its source is not one of http", "Write an http:// or https:// address."},
	{"{" EXTERNAL ", \"credential_source\": {\"file\": \"f\", \"format\": {\"type\": \"json\"}}}",
	 "the format of its source is not understood",
	 "It is {\"type\": \"text\"}, or {\"type\": \"json\", \"subject_token_field_name\": …}."},
	{"{" EXTERNAL ", \"credential_source\": {\"url\": \"https://x\", \"headers\": {\"a\": "
	 "\"b\\r\\nc: d\"}}}",
	 "the headers of its source are not headers", "Write them as an object of texts."},
};

static void
others_are_refused_by_name(void **state)
{
	(void) state;
	for (size_t i = 0; i < sizeof(bad_files) / sizeof(bad_files[0]); i++)
	{
		struct fault fault = {NULL, NULL};
		char *fact = memory_format("the file cannot be used: %s", bad_files[i].fact);

		assert_null(credential_parse(bad_files[i].text, "the file", &fault));
		assert_string_equal(fault.fact, fact);
		assert_string_equal(fault.remedy, bad_files[i].remedy);
		assert_null(strstr(fault.fact, "hush"));
		fault_free(&fault);
		free(fact);
	}
}

/* ---- where they are found ------------------------------------------------------------------- */

/* What credential_load() finds: the place, or the fault. */
static char *
find(const char *option)
{
	struct fault fault = {NULL, NULL};
	struct credential *credential = credential_load(option, &fault);
	char *found = memory_copy_text(credential != NULL ? credential->place : fault.fact);

	assert_int_equal(credential == NULL, fault.fact != NULL);
	credential_free(credential);
	fault_free(&fault);
	return found;
}

static void
expect_found(const char *option, const char *format, const char *path)
{
	char *found = find(option);
	char *expected =
		memory_format("%s%s%s", format, path != NULL ? path : "", path != NULL ? "\"" : "");

	assert_string_equal(found, expected);
	free(expected);
	free(found);
}

static void
are_found_in_the_order_of_google(void **state)
{
	char home[] = "/tmp/inbox-home-XXXXXX";
	char path[64];
	char *known;

	(void) state;
	load_clean_environment();
	assert_non_null(mkdtemp(home));
	known = memory_format("%s/application_default_credentials.json", home);
	write_file(path, USER, strlen(USER));
	expect_found(NULL,
				 "there are no credentials, and NO_GCE_CHECK says that there is no metadata server",
				 NULL);
	unsetenv("NO_GCE_CHECK");
	expect_found(NULL, "the metadata server", NULL);
	setenv("CLOUDSDK_CONFIG", home, 1);
	expect_found(NULL, "the metadata server", NULL);
	assert_int_equal(link(path, known), 0);
	expect_found(NULL, "the file \"", known);
	setenv("GOOGLE_APPLICATION_CREDENTIALS", path, 1);
	expect_found(NULL, "GOOGLE_APPLICATION_CREDENTIALS \"", path);
	expect_found(known, "--credentials-file \"", known);
	/* What is named and missing ends the search. */
	setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent", 1);
	expect_found(NULL,
				 "GOOGLE_APPLICATION_CREDENTIALS \"/nonexistent\" cannot be used: No such file or "
				 "directory",
				 NULL);
	expect_found("/tmp", "--credentials-file \"/tmp\" cannot be used: it is not a regular file",
				 NULL);
	unlink(known);
	unlink(path);
	rmdir(home);
	free(known);
	load_clean_environment();
}

static void
quota_project_of_the_environment_wins(void **state)
{
	struct fault fault = {NULL, NULL};
	struct credential *credential = credential_parse(
		"{\"type\": \"authorized_user\", \"client_id\": \"c\", \"client_secret\": \"s\", "
		"\"refresh_token\": \"r\", \"quota_project_id\": \"q\"}",
		"the file", &fault);

	(void) state;
	load_clean_environment();
	assert_non_null(credential);
	assert_null(credential_quota_project(NULL));
	assert_string_equal(credential_quota_project(credential), "q");
	setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "e", 1);
	assert_string_equal(credential_quota_project(credential), "e");
	assert_string_equal(credential_quota_project(NULL), "e");
	load_clean_environment();
	credential_free(credential);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_are_told_apart),
		cmocka_unit_test(others_are_refused_by_name),
		cmocka_unit_test(are_found_in_the_order_of_google),
		cmocka_unit_test(quota_project_of_the_environment_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
