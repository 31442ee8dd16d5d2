/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_ROUTE_H
#define PUBSUB_ROUTE_H

struct request;

/*
 * Finds out what the request is about, lets the credentials and the faults have their say, and
 * calls its handler. A request may be left without an answer: then it waits for one.
 */
void route_request(struct request *request);

#endif
