/* SPDX-License-Identifier: PostgreSQL */
#include "token.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "exchange.h"
#include "grant.h"
#include "jwt.h"
#include "memory.h"
#include "remedy.h"
#include "secret.h"
#include "url.h"

/* What impersonating asks of the token that it is done with. */
#define CLOUD_SCOPE "https://www.googleapis.com/auth/cloud-platform"
#define ANSWER_LIMIT ((size_t) 256 * 1024)

struct fetch;

/* Goes on with what was answered. */
typedef void (*fetch_step)(struct fetch *fetch, const struct http_response *response);

struct fetch
{
	struct http *http;
	struct credential *credential;
	const struct credential *base; /* the source of an impersonated one, or itself */
	struct token_spec spec;
	fetch_step step;
	char *origin; /* where the running request goes, for people */
	char *secret; /* what it carries */
	char *account;
	bool impersonated_base; /* an external account's own impersonation is done */
};

static void
free_fetch(struct fetch *fetch)
{
	credential_free(fetch->credential);
	memory_forget(fetch->secret);
	free(fetch->origin);
	free(fetch->account);
	free(fetch);
}

static void
drop_fetch(void *context)
{
	struct fetch *fetch = context;

	fetch->spec.dropped(fetch->spec.context);
	free_fetch(fetch);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void
fail(struct fetch *fetch, const char *error, enum remedy_cause cause, int64_t retry_after_ms)
{
	char *text = memory_format(
		"%s%s%s", fetch->origin != NULL ? fetch->origin : "", fetch->origin != NULL ? ": " : "",
		secret_is_in(error, fetch->base, fetch->secret) ? SECRET_NOT_SHOWN : error);
	struct token_result result = {
		.error = text,
		.hint = remedy_of(fetch->base->kind, cause),
		.permanent = cause == REMEDY_REFUSED || cause == REMEDY_NOT_IMPERSONATED,
		.retry_after_ms = retry_after_ms,
		.account = fetch->account,
	};

	fetch->spec.callback(fetch->spec.context, &result);
	free(text);
	free_fetch(fetch);
}

static void
succeed(struct fetch *fetch, const char *token, int64_t expires_ms)
{
	struct token_result result = {
		.token = token, .expires_ms = expires_ms, .account = fetch->account};

	fetch->spec.callback(fetch->spec.context, &result);
	free_fetch(fetch);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void
take_response(void *context, const struct http_response *response)
{
	struct fetch *fetch = context;

	fetch->step(fetch, response);
}

/* Takes the exchange over, and a secret that it carries, or NULL. */
static void
ask(struct fetch *fetch, struct exchange *exchange, fetch_step step, char *secret)
{
	struct http_spec spec = {
		.method = exchange->method,
		.url = exchange->url,
		.headers = (const char *const *) exchange->headers,
		.direct = exchange->direct,
		.body = exchange->body,
		.body_size = exchange->body != NULL ? strlen(exchange->body) : 0,
		.content_type = exchange->content_type,
		.response_limit = ANSWER_LIMIT,
		.timeout_ms = exchange->timeout_ms,
		.callback = take_response,
		.dropped = drop_fetch,
		.context = fetch,
	};

	fetch->step = step;
	memory_forget(fetch->secret);
	fetch->secret = secret;
	free(fetch->origin);
	fetch->origin = url_origin(exchange->url);
	http_start(fetch->http, &spec);
	exchange_free(exchange);
}

/* ---- impersonation -------------------------------------------------------------------------- */

/* The next credential that is impersonated with the token at hand, or NULL. */
static const struct credential *
next_impersonation(const struct fetch *fetch)
{
	if (!fetch->impersonated_base && fetch->base->kind == CREDENTIAL_EXTERNAL &&
		credential_text(fetch->base, "service_account_impersonation_url") != NULL)
	{
		return fetch->base;
	}
	return fetch->base != fetch->credential ? fetch->credential : NULL;
}

/* What the first token is for. */
static const char *
base_scope(const struct fetch *fetch)
{
	return next_impersonation(fetch) != NULL ? CLOUD_SCOPE : fetch->spec.scope;
}

static void take_impersonated(struct fetch *fetch, const struct http_response *response);
static void take_last(struct fetch *fetch, const struct http_response *response);

static void
impersonate(struct fetch *fetch, const struct credential *credential, const char *bearer)
{
	struct exchange exchange;
	bool last = credential == fetch->credential;

	fetch->impersonated_base = true;
	exchange_impersonate(&exchange, credential, bearer, last ? fetch->spec.scope : CLOUD_SCOPE);
	ask(fetch, &exchange, last ? take_last : take_impersonated, memory_copy_text(bearer));
}

static bool
is_impersonating(const struct fetch *fetch)
{
	return fetch->step == take_impersonated || fetch->step == take_last;
}

static void
fail_grant(struct fetch *fetch, struct grant *grant, const struct http_response *response)
{
	enum remedy_cause cause = response->status == 0		? REMEDY_NOT_REACHED
							  : !grant->permanent		? REMEDY_PASSING
							  : is_impersonating(fetch) ? REMEDY_NOT_IMPERSONATED
														: REMEDY_REFUSED;

	fail(fetch, grant->error, cause, response->retry_after_ms);
	grant_free(grant);
}

static void
take_last(struct fetch *fetch, const struct http_response *response)
{
	struct grant grant;

	grant_read_impersonated(&grant, response, time(NULL));
	if (grant.token == NULL)
	{
		fail_grant(fetch, &grant, response);
		return;
	}
	succeed(fetch, grant.token, response->sent_ms + grant.lifetime_ms);
	grant_free(&grant);
}

static void
take_impersonated(struct fetch *fetch, const struct http_response *response)
{
	struct grant grant;

	grant_read_impersonated(&grant, response, time(NULL));
	if (grant.token == NULL)
	{
		fail_grant(fetch, &grant, response);
		return;
	}
	impersonate(fetch, fetch->credential, grant.token);
	grant_free(&grant);
}

/* ---- the first token ------------------------------------------------------------------------ */

static void
take_base(struct fetch *fetch, const struct http_response *response)
{
	const struct credential *next = next_impersonation(fetch);
	struct grant grant;

	grant_read(&grant, response);
	if (grant.token == NULL)
	{
		fail_grant(fetch, &grant, response);
		return;
	}
	if (next != NULL)
	{
		impersonate(fetch, next, grant.token);
	}
	else
	{
		succeed(fetch, grant.token, response->sent_ms + grant.lifetime_ms);
	}
	grant_free(&grant);
}

static void
ask_machine(struct fetch *fetch)
{
	struct exchange exchange;

	exchange_ask_machine(&exchange, base_scope(fetch));
	ask(fetch, &exchange, take_base, NULL);
}

/* Without an answer there will be no token either; without a name there may. */
static void
take_account(struct fetch *fetch, const struct http_response *response)
{
	if (response->status == 0)
	{
		fail(fetch, response->error, REMEDY_NOT_REACHED, 0);
		return;
	}
	if (response->status == 200 && grant_is_token(response->body))
	{
		fetch->account = memory_copy_text(response->body);
	}
	ask_machine(fetch);
}

static void
ask_account(struct fetch *fetch)
{
	struct exchange exchange;

	exchange_ask_account(&exchange);
	ask(fetch, &exchange, take_account, NULL);
}

static void
exchange_subject_for_token(struct fetch *fetch, struct grant *grant)
{
	struct exchange exchange;

	exchange_subject(&exchange, fetch->base, grant->token, base_scope(fetch));
	ask(fetch, &exchange, take_base, memory_copy_text(grant->token));
}

static void
take_subject(struct fetch *fetch, const struct http_response *response)
{
	struct grant grant;

	grant_read_subject(&grant, fetch->base, response);
	if (grant.token == NULL)
	{
		fail_grant(fetch, &grant, response);
		return;
	}
	exchange_subject_for_token(fetch, &grant);
	grant_free(&grant);
}

static void
find_subject(struct fetch *fetch)
{
	struct exchange exchange;
	struct grant grant;

	if (credential_member(credential_subject(fetch->base), "file") == NULL)
	{
		exchange_ask_subject(&exchange, fetch->base);
		ask(fetch, &exchange, take_subject, NULL);
		return;
	}
	grant_read_file(&grant, fetch->base);
	if (grant.token != NULL)
	{
		exchange_subject_for_token(fetch, &grant);
	}
	else
	{
		/* It may be written in a moment, as when a pod starts. */
		fail(fetch, grant.error, REMEDY_NO_SUBJECT, 0);
	}
	grant_free(&grant);
}

static void
sign(struct fetch *fetch)
{
	bool self_signed = fetch->spec.self_signed && next_impersonation(fetch) == NULL;
	char *audience = exchange_token_url(fetch->base);
	int64_t now = clock_ms();
	char *token = self_signed ? jwt_self_signed(fetch->base, fetch->spec.scope, time(NULL))
							  : jwt_assertion(fetch->base, base_scope(fetch), audience, time(NULL));

	free(audience);
	if (token == NULL)
	{
		fail(fetch, "OpenSSL could not sign with the private key", REMEDY_REFUSED, 0);
	}
	else if (self_signed)
	{
		succeed(fetch, token, now + (int64_t) JWT_LIFETIME_S * 1000);
		memory_forget(token);
	}
	else
	{
		struct exchange exchange;

		exchange_assertion(&exchange, fetch->base, token);
		ask(fetch, &exchange, take_base, token);
	}
}

static void
refresh(struct fetch *fetch)
{
	struct exchange exchange;

	exchange_refresh(&exchange, fetch->base);
	ask(fetch, &exchange, take_base, NULL);
}

void
token_fetch(struct http *http, struct credential *credential, const struct token_spec *spec)
{
	struct fetch *fetch = memory_new(sizeof(*fetch));

	fetch->http = http;
	fetch->credential = credential;
	fetch->base = credential->source != NULL ? credential->source : credential;
	fetch->spec = *spec;
	switch (fetch->base->kind)
	{
		case CREDENTIAL_METADATA:
			(spec->account ? ask_account : ask_machine)(fetch);
			break;
		case CREDENTIAL_SERVICE_ACCOUNT:
			sign(fetch);
			break;
		case CREDENTIAL_USER:
		case CREDENTIAL_EXTERNAL_USER:
			refresh(fetch);
			break;
		case CREDENTIAL_EXTERNAL:
			find_subject(fetch);
			break;
		case CREDENTIAL_IMPERSONATED: /* never a source */
		case CREDENTIAL_KINDS:
			abort();
	}
}
