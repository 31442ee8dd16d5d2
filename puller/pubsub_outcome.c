/* SPDX-License-Identifier: PostgreSQL */
#include "pubsub.h"

#include <string.h>

const char *
pubsub_outcome_name(enum pubsub_outcome outcome)
{
	switch (outcome)
	{
		case PUBSUB_OK:
			return "ok";
		case PUBSUB_TRANSIENT:
			return "transient";
		case PUBSUB_UNAUTHENTICATED:
			return "unauthenticated";
		case PUBSUB_FORBIDDEN:
			return "forbidden";
		case PUBSUB_NOT_FOUND:
			return "not_found";
		case PUBSUB_INVALID:
			return "invalid";
		case PUBSUB_PRECONDITION:
			return "precondition";
		case PUBSUB_TOO_LARGE:
			return "too_large";
	}
	return "unknown";
}

const char *
pubsub_remedy(enum pubsub_outcome outcome, long status)
{
	switch (outcome)
	{
		case PUBSUB_UNAUTHENTICATED:
			return "the access token was refused, a renewed one as well: write a fresh one into "
				   "the file of "
				   "--token-file, or see to it that the account is not disabled and the clock of "
				   "this machine is right";
		case PUBSUB_FORBIDDEN:
			return "what is missing is said: grant roles/pubsub.subscriber on the subscription to "
				   "the account of the credentials, or for a quota project "
				   "roles/serviceusage.serviceUsageConsumer there, or enable pubsub.googleapis.com";
		case PUBSUB_NOT_FOUND:
			return "check --subscription and its project, or create it; it is tried again by "
				   "itself";
		case PUBSUB_PRECONDITION:
			return "the subscription must be a pull subscription that is not detached";
		case PUBSUB_INVALID:
			return "check --subscription and --endpoint";
		case PUBSUB_TOO_LARGE:
			return "fewer messages are asked for; raise --max-response if this stays";
		case PUBSUB_TRANSIENT:
			if (status == 0)
			{
				return "it is tried again by itself; check --endpoint and the way there, proxies "
					   "(HTTPS_PROXY, NO_PROXY) included; its certificate must be in date, for "
					   "that name, and from an authority that is trusted (--ca-file)";
			}
			break;
		case PUBSUB_OK:
			break;
	}
	return "it is tried again by itself";
}

enum pubsub_id_result
pubsub_id_result(const struct pubsub_answer *answer, const char *ack_id)
{
	struct json_object *reason;

	if (answer->outcome == PUBSUB_OK)
	{
		return PUBSUB_ID_DONE;
	}
	if (answer->failures == NULL)
	{
		return PUBSUB_ID_UNKNOWN;
	}
	if (!json_object_object_get_ex(answer->failures, ack_id, &reason))
	{
		return PUBSUB_ID_DONE;
	}
	return strncmp(json_object_get_string(reason), "TRANSIENT_", 10) == 0 ? PUBSUB_ID_AGAIN
																		  : PUBSUB_ID_INVALID;
}
