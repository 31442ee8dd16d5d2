/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_REQUEST_H
#define PUBSUB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "list.h"
#include "timer.h"

struct json_object;
struct MHD_Connection;
struct problem;
struct server;
struct service;

/* What a request is for, as the faults count it. */
enum operation
{
	OPERATION_PUBLISH,
	OPERATION_PULL,
	OPERATION_ACK,
	OPERATION_MODACK,
	OPERATION_GET,
	OPERATION_SEEK,
	OPERATION_OTHER
};

/* What the faults do to one request. All zero is nothing. */
struct effects
{
	bool skip;	  /* the request is not executed */
	bool reset;	  /* the connection is reset instead of an answer */
	bool stall;	  /* no answer ever */
	bool ignore;  /* the answer is a success, and nothing was done */
	bool shuffle; /* the messages of the answer in another order */
	bool half;	  /* only the first half of the body, in a complete response */
	bool garbage; /* a body that is no JSON */
	bool cut;	  /* the connection ends after cut_at bytes of the body */
	size_t cut_at;
	int64_t delay; /* nanoseconds */
	int status;	   /* this HTTP status instead of doing anything */
	char retry_after[40];
	char message[200];
};

/*
 * One request, from its first header to its last byte out. A handler answers it with one of the
 * functions below, at once or (a pull) later.
 */
struct request
{
	struct server *server;
	struct service *service;
	struct MHD_Connection *connection;
	const char *method;
	char *path;
	struct buf body;
	bool too_large;
	bool routed;
	bool answered;
	bool suspended;
	struct link held; /* among the suspended ones */
	struct timer delay;
	struct effects effects;
	int status;
	struct buf answer;
	const char *content_type;

	/* The target: a full resource name, and the verb behind it, if any. */
	char *name;
	const char *verb;

	/* A pull that waits. */
	struct link waiting;
	struct timer patience;
	int64_t max_messages;
};

typedef void (*handler)(struct request *request);

/* The value of a query parameter, or NULL. */
const char *request_query(const struct request *request, const char *name);

/* The body as an object; NULL after answering that it is none. Owned by the caller. */
struct json_object *request_object(struct request *request);

/* Answers: the document (taken over), "{}", a problem, or what was written to request->answer. */
void request_reply(struct request *request, struct json_object *document);
void request_reply_empty(struct request *request);
void request_reply_problem(struct request *request, struct problem *problem);
void request_reply_text(struct request *request, int status, const char *content_type);

#endif
