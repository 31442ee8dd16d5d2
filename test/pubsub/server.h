/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_SERVER_H
#define PUBSUB_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct request;
struct server;
struct service;

/* Where to listen, and the texts of a certificate and its key (NULL: no TLS). */
struct server_options
{
	const char *host;
	int port; /* 0: any that is free */
	const char *certificate;
	const char *key;
};

/* NULL, with a message on standard error, if it cannot listen. */
struct server *server_start(struct service *service, const struct server_options *options);
int server_port(const struct server *server);

/* A descriptor to wait for until it is readable, and how long at most (ms; -1: for ever). */
int server_descriptor(const struct server *server);
int server_timeout(const struct server *server);

/* Does what is to be done, without waiting. */
void server_run(struct server *server);

/* The request has been answered: send it, now or when its delay is over. */
void server_answer(struct request *request);

/* Pulls and stalled requests that still wait get no answer. */
void server_stop(struct server *server);

#endif
