/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_CONTROL_H
#define PUBSUB_CONTROL_H

struct request;

/*
 * The requests under /control/, which the real service does not have, and which neither need a
 * token nor suffer faults: stats, faults, history.
 */
void control_handle(struct request *request);

#endif
