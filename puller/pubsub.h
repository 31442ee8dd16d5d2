/* SPDX-License-Identifier: PostgreSQL */
/*
 * The calls of Pub/Sub's REST interface that a subscriber needs. Builds requests, says what an
 * answer means, retries nothing but one 401 after the token was read again.
 */
#ifndef INBOX_PUBSUB_H
#define INBOX_PUBSUB_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth.h"
#include "config.h"
#include "http.h"

/* The service refuses requests of more than 512 KiB; ids are counted with room to spare. */
#define PUBSUB_MAX_IDS 1000
#define PUBSUB_MAX_ID_BYTES ((size_t) 400 * 1024)
/* A pull for more is answered with no more. */
#define PUBSUB_MAX_PULL 1000

/* The permission that pulling and acknowledging take. */
#define PUBSUB_CONSUME "pubsub.subscriptions.consume"

enum pubsub_outcome
{
	PUBSUB_OK,
	PUBSUB_TRANSIENT,		/* transport, 429, 5xx: again after a pause */
	PUBSUB_UNAUTHENTICATED, /* 401, also with a token read again */
	PUBSUB_FORBIDDEN,		/* 403 */
	PUBSUB_NOT_FOUND,		/* 404 */
	PUBSUB_INVALID,			/* 400 about the request itself */
	PUBSUB_PRECONDITION,	/* the subscription cannot be used this way: detached, push, … */
	PUBSUB_TOO_LARGE		/* the response passed --max-response */
};

/* What became of one ack id in an answered acknowledge or modifyAckDeadline. */
enum pubsub_id_result
{
	PUBSUB_ID_DONE,
	PUBSUB_ID_AGAIN,   /* failed for now */
	PUBSUB_ID_INVALID, /* expired, superseded or malformed: never to be sent again */
	PUBSUB_ID_UNKNOWN  /* the answer failed as a whole and names no id */
};

struct pubsub_answer
{
	enum pubsub_outcome outcome;
	long status;
	const char *error; /* for people; NULL when OK */
	const char *body;  /* of an OK answer */
	size_t size;
	int64_t sent_ms;
	int64_t first_byte_ms;		  /* 0 when nothing came */
	int64_t retry_after_ms;		  /* what the service asked for, or 0 */
	struct json_object *failures; /* ack id → reason, merged from the details; or NULL */
};

typedef void (*pubsub_callback)(void *context, const struct pubsub_answer *answer);

struct pubsub
{
	struct http *http;
	struct auth *auth;
	const struct config *config;
	char *url; /* endpoint and subscription, percent-encoded */
};

void pubsub_init(struct pubsub *pubsub, struct http *http, struct auth *auth,
				 const struct config *config);
void pubsub_free(struct pubsub *pubsub);

/*
 * All of these answer later through the callback, once. The answer is valid during it only. The
 * context is memory that the callback frees; of a request that is dropped at the end, free() is
 * called on it instead.
 */
void pubsub_pull(struct pubsub *pubsub, int max_messages, pubsub_callback callback, void *context);
void pubsub_acknowledge(struct pubsub *pubsub, char *const *ack_ids, size_t count,
						pubsub_callback callback, void *context);
void pubsub_modify_ack_deadline(struct pubsub *pubsub, char *const *ack_ids, size_t count,
								int seconds, pubsub_callback callback, void *context);
void pubsub_get_subscription(struct pubsub *pubsub, pubsub_callback callback, void *context);
void pubsub_test_permissions(struct pubsub *pubsub, pubsub_callback callback, void *context);

/* To a time, as Pub/Sub writes them. */
void pubsub_seek(struct pubsub *pubsub, const char *time, pubsub_callback callback, void *context);

/* Of a topic, by its full name. */
void pubsub_list_subscriptions(struct pubsub *pubsub, const char *topic, pubsub_callback callback,
							   void *context);

enum pubsub_id_result pubsub_id_result(const struct pubsub_answer *answer, const char *ack_id);

/* Bytes an ack id takes in a request. */
size_t pubsub_id_size(const char *ack_id);

/* For logs: "unauthenticated", "not_found", … */
const char *pubsub_outcome_name(enum pubsub_outcome outcome);

/* What to do about it, for people; "status" is the answer's, 0 when none came. */
const char *pubsub_remedy(enum pubsub_outcome outcome, long status);

#endif
