/* SPDX-License-Identifier: PostgreSQL */
/* What --listen answers to which path. */
#ifndef INBOX_ROUTE_H
#define INBOX_ROUTE_H

#include <microhttpd.h>

struct routes;
struct puller;

struct routes *route_new(void);
void route_free(struct routes *answers);

/* Queues the answer to a request. */
enum MHD_Result route_send(struct routes *answers, struct puller *puller,
						   struct MHD_Connection *connection, const char *path, const char *method);

#endif
