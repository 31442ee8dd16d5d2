/* SPDX-License-Identifier: PostgreSQL */
/* What --listen answers to which path. */
#ifndef INBOX_ANSWER_HTTP_H
#define INBOX_ANSWER_HTTP_H

#include <microhttpd.h>

struct answer_http;
struct puller;

struct answer_http *answer_http_new(void);
void answer_http_free(struct answer_http *answers);

/* Queues the answer to a request. */
enum MHD_Result answer_http_send(struct answer_http *answers, struct puller *puller,
								 struct MHD_Connection *connection, const char *path,
								 const char *method);

#endif
