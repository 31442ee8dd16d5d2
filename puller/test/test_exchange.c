/* SPDX-License-Identifier: PostgreSQL */
/* What is sent to have a token, and what is made of the answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "exchange.h"
#include "grant.h"
#include "load.h"
#include "memory.h"

#define USER                                                                             \
	"{\"type\": \"authorized_user\", \"client_id\": \"c&d\", \"client_secret\": \"s\", " \
	"\"refresh_token\": \"1//r\"}"
#define WORKFORCE                                                             \
	"{\"type\": \"external_account_authorized_user\", \"client_id\": \"c\", " \
	"\"client_secret\": \"s\", \"refresh_token\": \"r\", \"universe_domain\": \"u.test\"}"
#define EXTERNAL(more)                                                                       \
	"{\"type\": \"external_account\", \"audience\": \"//iam/a b\", \"subject_token_type\": " \
	"\"jwt\", \"service_account_impersonation_url\": "                                       \
	"\"https://iam.test/x:generateAccessToken\", " more "}"

static struct credential *
parse(const char *text)
{
	struct fault fault = {NULL, NULL};
	struct credential *credential = credential_parse(text, "the file", &fault);

	assert_null(fault.fact);
	return credential;
}

/* Ends the exchange and the credential. */
static void
expect(struct exchange *exchange, struct credential *credential, const char *url, const char *body,
	   const char *content_type, const char *header)
{
	assert_string_equal(exchange->url, url);
	assert_string_equal(exchange->method, body != NULL ? "POST" : "GET");
	if (body != NULL)
	{
		assert_string_equal(exchange->body, body);
		assert_string_equal(exchange->content_type, content_type);
	}
	else
	{
		assert_null(exchange->body);
	}
	if (header != NULL)
	{
		assert_string_equal(exchange->headers[0], header);
	}
	assert_null(exchange->headers[header != NULL]);
	assert_in_range(exchange->timeout_ms, 1, 10000);
	exchange_free(exchange);
	credential_free(credential);
}

#define FORM "application/x-www-form-urlencoded"

static void
refreshes(void **state)
{
	struct exchange exchange;
	struct credential *credential = parse(USER);

	(void) state;
	exchange_refresh(&exchange, credential);
	expect(&exchange, credential, "https://oauth2.googleapis.com/token",
		   "grant_type=refresh_token&refresh_token=1%2F%2Fr&client_id=c%26d&client_secret=s", FORM,
		   NULL);
	credential = parse(WORKFORCE);
	exchange_refresh(&exchange, credential);
	expect(&exchange, credential, "https://sts.u.test/v1/oauthtoken",
		   "grant_type=refresh_token&refresh_token=r", FORM, "Authorization: Basic Yzpz");
}

static void
assertion(void **state)
{
	struct exchange exchange;
	struct credential *credential = parse(USER);

	(void) state;
	exchange_assertion(&exchange, credential, "a.b.c");
	expect(&exchange, credential, "https://oauth2.googleapis.com/token",
		   "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=a.b.c", FORM,
		   NULL);
}

#define STS                                                                           \
	"grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&"           \
	"audience=%2F%2Fiam%2Fa%20b&scope=sc&requested_token_type=urn%3Aietf%3Aparams%3A" \
	"oauth%3Atoken-type%3Aaccess_token&subject_token=t&subject_token_type=jwt"

static void
subject_tokens(void **state)
{
	struct exchange exchange;
	struct credential *credential =
		parse(EXTERNAL("\"credential_source\": {\"url\": \"http://x/t?a=b\", \"headers\": "
					   "{\"Metadata\": \"True\"}}"));

	(void) state;
	exchange_ask_subject(&exchange, credential);
	assert_false(exchange.direct);
	expect(&exchange, credential, "http://x/t?a=b", NULL, NULL, "Metadata: True");
	credential = parse(EXTERNAL("\"credential_source\": {\"file\": \"f\"}"));
	exchange_subject(&exchange, credential, "t", "sc");
	expect(&exchange, credential, "https://sts.googleapis.com/v1/token", STS, FORM, NULL);
	credential = parse(EXTERNAL("\"credential_source\": {\"file\": \"f\"}, \"token_url\": "
								"\"https://sts.test/\", \"workforce_pool_user_project\": \"w\""));
	exchange_subject(&exchange, credential, "t", "sc");
	expect(&exchange, credential, "https://sts.test/",
		   STS "&options=%7B%22userProject%22%3A%22w%22%7D", FORM, NULL);
	/* A client of its own comes before the project. */
	credential = parse(EXTERNAL("\"credential_source\": {\"file\": \"f\"}, \"client_id\": \"c\", "
								"\"workforce_pool_user_project\": \"w\""));
	exchange_subject(&exchange, credential, "t", "sc");
	expect(&exchange, credential, "https://sts.googleapis.com/v1/token", STS, FORM,
		   "Authorization: Basic Yzo=");
}

static void
impersonation(void **state)
{
	struct exchange exchange;
	struct credential *credential =
		parse(EXTERNAL("\"credential_source\": {\"file\": \"f\"}, "
					   "\"service_account_impersonation\": {\"token_lifetime_seconds\": 600}"));

	(void) state;
	exchange_impersonate(&exchange, credential, "b", "https://sc");
	expect(&exchange, credential, "https://iam.test/x:generateAccessToken",
		   "{\"scope\":[\"https://sc\"],\"lifetime\":\"600s\"}", "application/json",
		   "Authorization: Bearer b");
	/* A source that is a user says whom the request is charged to. */
	credential =
		parse("{\"type\": \"impersonated_service_account\", \"service_account_impersonation_url\": "
			  "\"https://iam.test/z\", \"source_credentials\": {\"type\": \"authorized_user\", "
			  "\"client_id\": \"c\", \"client_secret\": \"s\", \"refresh_token\": \"r\", "
			  "\"quota_project_id\": \"q\"}}");
	exchange_impersonate(&exchange, credential, "b", "sc");
	assert_string_equal(exchange.headers[1], "x-goog-user-project: q");
	exchange_free(&exchange);
	credential_free(credential);
	credential = parse("{\"type\": \"impersonated_service_account\", \"source_credentials\": " USER
					   ", \"service_account_impersonation_url\": \"https://iam.test/y\", "
					   "\"delegates\": [\"d\"]}");
	exchange_impersonate(&exchange, credential, "b", "sc");
	expect(&exchange, credential, "https://iam.test/y",
		   "{\"delegates\":[\"d\"],\"scope\":[\"sc\"],\"lifetime\":\"3600s\"}", "application/json",
		   "Authorization: Bearer b");
}

static void
metadata_server(void **state)
{
	struct exchange exchange;

	(void) state;
	unsetenv("GCE_METADATA_HOST");
	exchange_ask_machine(&exchange, "https://sc/a");
	assert_true(exchange.direct);
	expect(&exchange, NULL,
		   "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/"
		   "token?scopes=https%3A%2F%2Fsc%2Fa",
		   NULL, NULL, "Metadata-Flavor: Google");
	setenv("GCE_METADATA_HOST", "127.0.0.1:8", 1);
	exchange_ask_account(&exchange);
	expect(&exchange, NULL,
		   "http://127.0.0.1:8/computeMetadata/v1/instance/service-accounts/default/email", NULL,
		   NULL, "Metadata-Flavor: Google");
	unsetenv("GCE_METADATA_HOST");
}

/* ---- answers -------------------------------------------------------------------------------- */

static void
answers(void **state)
{
	static const struct
	{
		long status;
		const char *body;
		const char *token; /* or NULL: */
		const char *error;
		int64_t lifetime_ms;
		bool permanent;
	} cases[] = {
		{200, "{\"access_token\": \"t\", \"expires_in\": 3599}", "t", NULL, 3599000, false},
		{200, "{\"access_token\": \"t\", \"expires_in\": \"12\"}", "t", NULL, 12000, false},
		{200, "{\"access_token\": \"t\"}", "t", NULL, 3600000, false},
		{200, "{\"access_token\": \"t\", \"expires_in\": -1}", "t", NULL, 0, false},
		{200, "{\"access_token\": \"t\", \"expires_in\": 1e30}", "t", NULL, 86400000, false},
		{200, "{\"access_token\": \"a\\r\\nb: c\"}", NULL, "the answer holds no token", 0, false},
		{200, "{\"access_token\": \"a\\u0000b\"}", NULL, "the answer holds no token", 0, false},
		{200, "<html>", NULL, "the answer holds no token", 0, false},
		{200, "[]", NULL, "the answer holds no token", 0, false},
		{0, "", NULL, "connection reset", 0, false},
		{400, "{\"error\": \"invalid_grant\", \"error_description\": \"Bad.\"}", NULL,
		 "HTTP 400 invalid_grant: Bad.", 0, true},
		{400, "{\"error\": \"temporarily_unavailable\"}", NULL, "HTTP 400 temporarily_unavailable",
		 0, false},
		{403, "{\"error\": {\"status\": \"PERMISSION_DENIED\", \"message\": \"No.\"}}", NULL,
		 "HTTP 403 PERMISSION_DENIED: No.", 0, true},
		{404, "not found", NULL, "HTTP 404", 0, true},
		{429, "", NULL, "HTTP 429", 0, false},
		{503, "[1]", NULL, "HTTP 503", 0, false},
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		struct http_response response = {
			.status = cases[i].status, .body = cases[i].body, .size = strlen(cases[i].body)};
		struct grant grant;

		snprintf(response.error, sizeof(response.error), "connection reset");
		grant_read(&grant, &response);
		assert_int_equal(grant.permanent, cases[i].permanent);
		if (cases[i].token != NULL)
		{
			assert_string_equal(grant.token, cases[i].token);
			assert_int_equal(grant.lifetime_ms, cases[i].lifetime_ms);
		}
		else
		{
			assert_null(grant.token);
			assert_string_equal(grant.error, cases[i].error);
		}
		grant_free(&grant);
	}
}

static void
impersonated_answers(void **state)
{
	struct http_response response = {
		.status = 200,
		.body = "{\"accessToken\": \"t\", \"expireTime\": \"2026-01-01T01:00:00Z\"}"};
	struct grant grant;

	(void) state;
	grant_read_impersonated(&grant, &response, 1767225600 + 600);
	assert_string_equal(grant.token, "t");
	assert_int_equal(grant.lifetime_ms, 3000000);
	grant_free(&grant);
	/* By a clock that is ahead it has ended before it was given; it is good all the same. */
	grant_read_impersonated(&grant, &response, 1767225600 + 7200);
	assert_int_equal(grant.lifetime_ms, 60000);
	grant_free(&grant);
}

/* ---- subject tokens ------------------------------------------------------------------------- */

static void
expect_subject(const char *source, const char *text, const char *token)
{
	char path[64];
	char *file;
	struct credential *credential;
	struct grant grant;

	write_file(path, text, strlen(text));
	file = memory_format(EXTERNAL("\"credential_source\": {\"file\": \"%s\"%s}"), path, source);
	credential = parse(file);
	grant_read_file(&grant, credential);
	if (token != NULL)
	{
		assert_string_equal(grant.token, token);
	}
	else
	{
		assert_null(grant.token);
		assert_string_equal(grant.error, "the source of the subject token holds none");
	}
	grant_free(&grant);
	unlink(path);
	grant_read_file(&grant, credential);
	assert_null(grant.token);
	assert_non_null(strstr(grant.error, "No such file"));
	grant_free(&grant);
	credential_free(credential);
	free(file);
}

static void
subject_files(void **state)
{
	const char *json = ", \"format\": {\"type\": \"json\", \"subject_token_field_name\": \"id\"}";

	(void) state;
	expect_subject("", "t o\n\n", "t o");
	expect_subject("", " \n", NULL);
	expect_subject("", "", NULL);
	expect_subject(json, "{\"id\": \"x\"}", "x");
	expect_subject(json, "{\"id\": 1}", NULL);
	expect_subject(json, "x", NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refreshes),
		cmocka_unit_test(assertion),
		cmocka_unit_test(subject_tokens),
		cmocka_unit_test(impersonation),
		cmocka_unit_test(metadata_server),
		cmocka_unit_test(answers),
		cmocka_unit_test(impersonated_answers),
		cmocka_unit_test(subject_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
