/* SPDX-License-Identifier: PostgreSQL */
/*
 * One connection that runs the same statement again and again, one transaction each: BEGIN, the
 * statement, COMMIT, all in one round trip. Every failure ends the process with status 1.
 */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include <libpq-fe.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

#define SESSION_PARAMETERS_MAX 4

/* The parameters of one transaction, in binary format. */
struct session_parameters
{
	int count;
	struct buffer value[SESSION_PARAMETERS_MAX];
};

struct session
{
	PGconn *connection;
	unsigned message_type; /* the oid of inbox_message */
};

void session_open(struct session *session, const char *conninfo, const char *statement);

/* One transaction. */
void session_run(struct session *session, const struct session_parameters *parameters);

/* Nanoseconds that the backend has had a processor so far. */
uint64_t session_cpu(const struct session *session);

void session_close(struct session *session);

#endif
