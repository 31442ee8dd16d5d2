/* SPDX-License-Identifier: PostgreSQL */
#include "iam.h"

#include <stdlib.h>

#include "credential_file.h"
#include "log.h"
#include "memory.h"
#include "token.h"

#define SCOPE "https://www.googleapis.com/auth/sqlservice.login"

struct question
{
	iam_callback callback;
	void *context;
};

static void
log_failure(const char *error, const char *hint)
{
	log_event(LOG_ERROR, "db_token_failed", "err", LOG_TEXT, error, "hint", LOG_TEXT, hint, NULL);
}

static void
take_result(void *context, const struct token_result *result)
{
	struct question *question = context;

	if (result->token == NULL)
	{
		log_failure(result->error, result->hint);
	}
	question->callback(question->context, result->token);
	free(question);
}

void
iam_ask(struct http *http, const struct config *config, iam_callback callback, void *context)
{
	struct question *question;
	struct token_spec spec = {.scope = SCOPE, .callback = take_result, .dropped = free};
	struct fault fault = {NULL, NULL};
	struct credential *credential = credential_load(config->credentials_file, &fault);

	if (credential == NULL)
	{
		log_failure(fault.fact, fault.remedy);
		fault_free(&fault);
		callback(context, NULL);
		return;
	}
	question = memory_new(sizeof(*question));
	*question = (struct question){.callback = callback, .context = context};
	spec.context = question;
	token_fetch(http, credential, &spec);
}

static void
take_password(void *context, const char *token)
{
	struct db *db = context;

	if (token != NULL)
	{
		db_connect(db, token);
	}
	else
	{
		db_no_password(db);
	}
}

void
iam_connect(struct http *http, const struct config *config, struct db *db)
{
	if (config->db_auth == DB_AUTH_GCP_IAM)
	{
		db_await_password(db);
		iam_ask(http, config, take_password, db);
	}
	else
	{
		db_connect(db, NULL);
	}
}
