/* SPDX-License-Identifier: PostgreSQL */
#include "refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "credential.h"
#include "secret.h"

#define PAUSE_MAX_MS INT64_C(600000)

/* ---- details -------------------------------------------------------------------------------- */

/*
 * Merges the metadata of every ErrorInfo about ack ids: the service may send several. Others, as
 * those of a 403, have metadata too, and an ack id missing there has not succeeded.
 */
static void
merge_failures(struct pubsub_answer *answer, struct json_object *detail)
{
	struct json_object *metadata;
	const char *reason = credential_member(detail, "reason");

	if (reason == NULL || strcmp(reason, "EXACTLY_ONCE_ACKID_FAILURE") != 0 ||
		!json_object_object_get_ex(detail, "metadata", &metadata) ||
		!json_object_is_type(metadata, json_type_object))
	{
		return;
	}
	json_object_object_foreach(metadata, ack_id, failure)
	{
		if (answer->failures == NULL)
		{
			answer->failures = json_object_new_object();
		}
		/* Whatever is not a text is no reason either, and the id has failed. */
		json_object_object_add(answer->failures, ack_id,
							   json_object_is_type(failure, json_type_string)
								   ? json_object_get(failure)
								   : json_object_new_string(""));
	}
}

void
refusal_set_pause(struct pubsub_answer *answer, double seconds)
{
	/* Not a number is not within any limits. */
	answer->retry_after_ms = seconds >= 0 && seconds * 1000 < (double) PAUSE_MAX_MS
								 ? (int64_t) (seconds * 1000)
								 : PAUSE_MAX_MS;
}

static void
read_retry_delay(struct pubsub_answer *answer, struct json_object *detail)
{
	const char *delay = credential_member(detail, "retryDelay");

	if (delay != NULL)
	{
		refusal_set_pause(answer, strtod(delay, NULL));
	}
}

static void
read_details(struct pubsub_answer *answer, struct json_object *error)
{
	struct json_object *details;

	if (!json_object_object_get_ex(error, "details", &details) ||
		!json_object_is_type(details, json_type_array))
	{
		return;
	}
	for (size_t i = 0; i < json_object_array_length(details); i++)
	{
		struct json_object *detail = json_object_array_get_idx(details, i);

		if (json_object_is_type(detail, json_type_object))
		{
			merge_failures(answer, detail);
			read_retry_delay(answer, detail);
		}
	}
}

static enum pubsub_outcome
outcome_of_status(long status, const char *canonical)
{
	switch (status)
	{
		case 401:
			return PUBSUB_UNAUTHENTICATED;
		case 403:
			return PUBSUB_FORBIDDEN;
		case 404:
			return PUBSUB_NOT_FOUND;
		case 400:
			return canonical != NULL && strcmp(canonical, "FAILED_PRECONDITION") == 0
					   ? PUBSUB_PRECONDITION
					   : PUBSUB_INVALID;
		default:
			/* Redirects and 2xx without sense come from something in between: it passes. */
			return PUBSUB_TRANSIENT;
	}
}

/* ---- a permission --------------------------------------------------------------------------- */

/* The ErrorInfo of an error, or NULL. */
static struct json_object *
find_info(struct json_object *error)
{
	struct json_object *details;

	if (!json_object_object_get_ex(error, "details", &details) ||
		!json_object_is_type(details, json_type_array))
	{
		return NULL;
	}
	for (size_t i = 0; i < json_object_array_length(details); i++)
	{
		struct json_object *detail = json_object_array_get_idx(details, i);

		if (credential_member(detail, "reason") != NULL)
		{
			return detail;
		}
	}
	return NULL;
}

/*
 * The service names what is missing, or nothing but the refusal: then it is what the call takes.
 * A refusal for another reason, as an API that is not enabled, says all in its message.
 */
static struct refusal_need
find_missing(struct json_object *error, const struct refusal_need *need)
{
	struct json_object *info = find_info(error);
	struct json_object *metadata = NULL;
	const char *reason = credential_member(info, "reason");
	struct refusal_need missing = *need;
	const char *told;

	if (reason == NULL)
	{
		return missing;
	}
	json_object_object_get_ex(info, "metadata", &metadata);
	if (strcmp(reason, "IAM_PERMISSION_DENIED") == 0)
	{
		told = credential_member(metadata, "permission");
		missing.permission = told != NULL ? told : missing.permission;
		told = credential_member(metadata, "resource");
		missing.resource = told != NULL ? told : missing.resource;
	}
	else if (strcmp(reason, "USER_PROJECT_DENIED") == 0)
	{
		told = credential_member(metadata, "consumer");
		missing.permission = "serviceusage.services.use";
		missing.resource = told != NULL ? told : "the quota project";
	}
	else
	{
		missing.permission = NULL;
	}
	return missing;
}

static void
add_missing(struct json_object *error, const struct refusal_need *need, char *text)
{
	struct refusal_need missing = find_missing(error, need);
	size_t size = strlen(text);

	if (missing.permission != NULL)
	{
		snprintf(text + size, REFUSAL_TEXT_SIZE - size, "; missing is the permission %s on %s",
				 missing.permission, missing.resource);
	}
}

/* --------------------------------------------------------------------------------------------- */

/* Proxies answer with pages instead of a document, which say nothing. */
void
refusal_read(struct pubsub_answer *answer, const struct http_response *response,
			 const struct refusal_need *need, char text[REFUSAL_TEXT_SIZE])
{
	struct json_object *document = json_tokener_parse(response->body);
	struct json_object *error = NULL;
	const char *canonical = NULL;
	const char *message = NULL;

	if (json_object_object_get_ex(document, "error", &error) &&
		json_object_is_type(error, json_type_object))
	{
		canonical = credential_member(error, "status");
		message = credential_member(error, "message");
		if (message != NULL && secret_is_repeated(message, need->token))
		{
			message = SECRET_NOT_SHOWN;
		}
		read_details(answer, error);
	}
	answer->outcome = outcome_of_status(response->status, canonical);
	snprintf(text, REFUSAL_TEXT_SIZE, "HTTP %ld%s%s%s%.600s", response->status,
			 canonical != NULL ? " " : "", canonical != NULL ? canonical : "",
			 message != NULL ? ": " : "", message != NULL ? message : "");
	if (answer->outcome == PUBSUB_FORBIDDEN)
	{
		add_missing(error, need, text);
	}
	json_object_put(document);
}
