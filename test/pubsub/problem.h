/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_PROBLEM_H
#define PUBSUB_PROBLEM_H

#include <stdbool.h>

struct buf;
struct json_object;

/* The canonical codes of Google's services, in their numeric order (OK is 0). */
enum status
{
	STATUS_OK,
	STATUS_CANCELLED,
	STATUS_UNKNOWN,
	STATUS_INVALID_ARGUMENT,
	STATUS_DEADLINE_EXCEEDED,
	STATUS_NOT_FOUND,
	STATUS_ALREADY_EXISTS,
	STATUS_PERMISSION_DENIED,
	STATUS_RESOURCE_EXHAUSTED,
	STATUS_FAILED_PRECONDITION,
	STATUS_ABORTED,
	STATUS_OUT_OF_RANGE,
	STATUS_UNIMPLEMENTED,
	STATUS_INTERNAL,
	STATUS_UNAVAILABLE,
	STATUS_DATA_LOSS,
	STATUS_UNAUTHENTICATED
};

/* Why a request is refused. The details, if any, are an array owned by the problem. */
struct problem
{
	enum status status;
	int http; /* 0 = the usual one for the status */
	char text[640];
	struct json_object *details;
};

/* Always false, so that a check can end in "return problem_set(...)". */
bool problem_set(struct problem *problem, enum status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds an ErrorInfo to the details; takes over the metadata (may be NULL). */
void problem_detail(struct problem *problem, const char *reason, const char *domain,
					struct json_object *metadata);

/* The canonical code that a Google front end sends with an HTTP status. */
enum status status_of_http(int http);
int problem_http(const struct problem *problem);

/* Renders the error document and releases the details. */
void problem_render(struct problem *problem, struct buf *out);

#endif
