/* SPDX-License-Identifier: PostgreSQL */
/*
 * The orchestrator: hands ready messages to idle connections, keeps connections, and watches
 * which cluster it talks to.
 */
#ifndef INBOX_FLOW_H
#define INBOX_FLOW_H

#include "puller.h"

/* What every database connection calls; the context is the worker. */
extern const struct db_events flow_db_events;

/* Everything that is due, once a turn of the loop. */
void flow_step(struct puller *puller, int64_t now);

/* When flow_step() has something to do next. */
int64_t flow_deadline(const struct puller *puller, int64_t now);

#endif
