/* SPDX-License-Identifier: PostgreSQL */
#include "auth.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "credential_file.h"
#include "grant.h"
#include "log.h"
#include "memory.h"
#include "token.h"

#define BEARER "Authorization: Bearer "
#define SCOPE "https://www.googleapis.com/auth/pubsub"
#define LOOK_EVERY_MS 1000
#define RENEW_BEFORE_MS 225000
/* A token that is shorter than that is renewed at half its life, but no more often than this. */
#define RENEW_LEAST_MS 30000
#define RENEW_PAUSE_MS 1000
/* Refusals further apart than this have nothing to do with each other. */
#define REFUSALS_APART_MS 120000

struct auth_waiter
{
	STAILQ_ENTRY(auth_waiter) link;
	unsigned version;
	auth_callback callback;
	void (*dropped)(void *context);
	void *context;
};

void
auth_init(struct auth *auth, struct http *http, const struct config *config)
{
	*auth = (struct auth){
		.http = http,
		.credentials_file = config->credentials_file,
		.anonymous = config->emulator,
		.file = {.path = config->token_file},
		.kind = config->emulator ? "none" : "token_file",
		.expires_ms = CLOCK_NEVER,
		.next_ms = INT64_MIN,
		.forced_ms = INT64_MIN,
		.failing = {.first_ms = 1000, .limit_ms = 60000},
		.refusals = {.first_ms = 1000, .limit_ms = 60000},
	};
	STAILQ_INIT(&auth->waiters);
}

void
auth_free(struct auth *auth)
{
	struct auth_waiter *waiter;

	while ((waiter = STAILQ_FIRST(&auth->waiters)) != NULL)
	{
		STAILQ_REMOVE_HEAD(&auth->waiters, link);
		waiter->dropped(waiter->context);
		free(waiter);
	}
	memory_forget(auth->header);
	free(auth->quota_header);
	free(auth->account);
}

/* ---- what is at hand ------------------------------------------------------------------------ */

bool
auth_ready(const struct auth *auth, int64_t now)
{
	return auth->anonymous || (auth->header != NULL && now < auth->expires_ms);
}

bool
auth_is_hopeless(const struct auth *auth, int64_t now)
{
	return auth->permanent && !auth_ready(auth, now);
}

const char *
auth_header(const struct auth *auth)
{
	return auth->header;
}

const char *
auth_token(const struct auth *auth)
{
	return auth->header != NULL ? auth->header + strlen(BEARER) : NULL;
}

const char *
auth_quota_header(const struct auth *auth)
{
	return auth->quota_header;
}

const char *
auth_kind(const struct auth *auth)
{
	return auth->kind;
}

const char *
auth_account(const struct auth *auth)
{
	return auth->account;
}

/* The same one again is no new version. */
static void
take_token(struct auth *auth, const char *token)
{
	char *header = memory_format(BEARER "%s", token);

	if (auth->header == NULL || strcmp(auth->header, header) != 0)
	{
		auth->version++;
		auth->taken_ms = clock_ms();
		auth->refused = false;
	}
	memory_forget(auth->header);
	auth->header = header;
}

/* A value that would break the header is left out; config_check() has refused it. */
static void
take_quota_project(struct auth *auth, const struct credential *credential)
{
	const char *project = credential_quota_project(credential);

	free(auth->quota_header);
	auth->quota_header =
		grant_is_token(project) ? memory_format("x-goog-user-project: %s", project) : NULL;
}

/* Calls may come in again meanwhile: those find a list of their own. */
static void
wake_waiters(struct auth *auth)
{
	struct auth_waiters waiters = STAILQ_HEAD_INITIALIZER(waiters);
	struct auth_waiter *waiter;

	STAILQ_CONCAT(&waiters, &auth->waiters);
	while ((waiter = STAILQ_FIRST(&waiters)) != NULL)
	{
		STAILQ_REMOVE_HEAD(&waiters, link);
		waiter->callback(waiter->context, waiter->version != auth->version);
		free(waiter);
	}
}

/* ---- from a file ---------------------------------------------------------------------------- */

static void
look(struct auth *auth, bool always)
{
	char *token = token_file_look(&auth->file, always);

	if (token != NULL)
	{
		take_token(auth, token);
	}
	memory_forget(token);
	if (auth->quota_header == NULL)
	{
		take_quota_project(auth, NULL);
	}
}

/* ---- for credentials ------------------------------------------------------------------------ */

static void
note_failure(struct auth *auth, const char *error, const char *hint, bool permanent,
			 int64_t retry_after_ms)
{
	int64_t now = clock_ms();
	int64_t pause = backoff_next(&auth->failing);
	bool good = auth->header != NULL && !auth->refused && auth_ready(auth, now);

	if (retry_after_ms > pause && retry_after_ms < auth->failing.limit_ms)
	{
		pause = retry_after_ms;
	}
	auth->permanent = permanent;
	auth->next_ms = now + pause;
	log_event(permanent && !good ? LOG_ERROR : LOG_WARNING, "token_failed", "credentials", LOG_TEXT,
			  auth->kind, "account", LOG_TEXT, auth->account, "err", LOG_TEXT, error,
			  "old_one_good_for", good ? LOG_SECONDS : LOG_COUNT,
			  good ? auth->expires_ms - now : INT64_C(0), "retry_in", LOG_SECONDS, pause, "hint",
			  LOG_TEXT, hint, NULL);
}

static int64_t
renewal_of(int64_t now, int64_t expires_ms)
{
	int64_t left = expires_ms - now;
	int64_t least = left / 2 < RENEW_LEAST_MS ? left / 2 : RENEW_LEAST_MS;
	int64_t after = left - RENEW_BEFORE_MS > least ? left - RENEW_BEFORE_MS : least;

	return now + (after > RENEW_PAUSE_MS ? after : RENEW_PAUSE_MS);
}

static void
take_result(void *context, const struct token_result *result)
{
	struct auth *auth = context;
	int64_t now = clock_ms();
	unsigned before = auth->version;

	auth->fetching = false;
	if (result->account != NULL)
	{
		free(auth->account);
		auth->account = memory_copy_text(result->account);
	}
	if (result->token == NULL)
	{
		note_failure(auth, result->error, result->hint, result->permanent, result->retry_after_ms);
	}
	else if (!grant_is_token(result->token))
	{
		note_failure(auth, "what was given cannot be sent as a token", NULL, false, 0);
	}
	else
	{
		take_token(auth, result->token);
		auth->expires_ms = result->expires_ms;
		auth->next_ms = renewal_of(now, result->expires_ms);
		auth->permanent = false;
		backoff_reset(&auth->failing);
		log_event(before == 0 ? LOG_INFO : LOG_DEBUG, "token", "credentials", LOG_TEXT, auth->kind,
				  "account", LOG_TEXT, auth->account, "good_for", LOG_SECONDS,
				  auth->expires_ms - now, NULL);
	}
	wake_waiters(auth);
}

/* The result would go to one who is gone. */
static void
ignore_drop(void *context)
{
	(void) context;
}

static void
start_fetch(struct auth *auth)
{
	struct token_spec spec = {
		.scope = SCOPE,
		.self_signed = true,
		.account = true,
		.callback = take_result,
		.dropped = ignore_drop,
		.context = auth,
	};
	struct fault fault = {NULL, NULL};
	struct credential *credential = credential_load(auth->credentials_file, &fault);

	if (credential == NULL)
	{
		note_failure(auth, fault.fact, fault.remedy, true, 0);
		fault_free(&fault);
		wake_waiters(auth);
		return;
	}
	auth->kind = credential_kind_name(credential->kind);
	if (credential->account != NULL || credential->kind != CREDENTIAL_METADATA)
	{
		free(auth->account);
		auth->account = memory_copy_text(credential->account);
	}
	take_quota_project(auth, credential);
	auth->fetching = true;
	token_fetch(auth->http, credential, &spec);
}

/* ---- a turn --------------------------------------------------------------------------------- */

void
auth_step(struct auth *auth, int64_t now)
{
	if (auth->anonymous || auth->fetching || now < auth->next_ms)
	{
		return;
	}
	if (auth->file.path != NULL)
	{
		auth->next_ms = now + LOOK_EVERY_MS;
		look(auth, auth->header == NULL);
	}
	else
	{
		start_fetch(auth);
	}
}

int64_t
auth_deadline(const struct auth *auth)
{
	bool file_is_fine = auth->file.path != NULL && auth->header != NULL && !auth->refused;

	/* A file that is fine is looked at when something else wakes the loop. */
	return auth->anonymous || auth->fetching || file_is_fine ? CLOCK_NEVER : auth->next_ms;
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* One renewal for each, but not one after the other when fresh tokens are refused as well. */
static bool
may_renew(struct auth *auth, int64_t now)
{
	if (auth->fetching)
	{
		return true;
	}
	if (now < auth->forced_ms)
	{
		return false;
	}
	if (now > auth->forced_ms + REFUSALS_APART_MS)
	{
		backoff_reset(&auth->refusals);
	}
	auth->forced_ms = now + backoff_next(&auth->refusals);
	return true;
}

static void
add_waiter(struct auth *auth, unsigned version, auth_callback callback,
		   void (*dropped)(void *context), void *context)
{
	struct auth_waiter *waiter = memory_new(sizeof(*waiter));

	*waiter = (struct auth_waiter){
		.version = version, .callback = callback, .dropped = dropped, .context = context};
	STAILQ_INSERT_TAIL(&auth->waiters, waiter, link);
}

void
auth_refused(struct auth *auth, unsigned version, auth_callback callback,
			 void (*dropped)(void *context), void *context)
{
	bool ours = auth->version == version;

	auth->refused |= ours;
	if (ours && auth->file.path != NULL)
	{
		look(auth, true);
	}
	if (!ours || auth->anonymous || auth->file.path != NULL || !may_renew(auth, clock_ms()))
	{
		callback(context, auth->version != version);
		return;
	}
	add_waiter(auth, version, callback, dropped, context);
	if (!auth->fetching)
	{
		start_fetch(auth);
	}
}
