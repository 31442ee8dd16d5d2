/* SPDX-License-Identifier: PostgreSQL */
/*
 * The one thread beside the loop: it runs PQconnectdbParams, which looks up names, negotiates TLS
 * and Kerberos and reads service files, all of it blocking. It touches nothing but its own queue
 * and hands the finished connection over through an eventfd.
 */
#ifndef INBOX_CONNECTOR_H
#define INBOX_CONNECTOR_H

#include <libpq-fe.h>

struct connector;

/* What the thread does; "password" may be NULL. For who may wait; never NULL but out of memory. */
PGconn *connector_open(const char *conninfo, const char *password);

/* "conninfo" is what --dbname gave, or NULL; it must live as long as the connector. */
struct connector *connector_new(const char *conninfo);

/* Readable when a connection attempt has ended. */
int connector_fd(const struct connector *connector);

/*
 * Asks for a connection; it comes back with "owner". Attempts run one after the other. With a
 * password, which is copied, TLS is insisted on.
 */
void connector_ask(struct connector *connector, void *owner, const char *password);

/* The next ended attempt, good or failed, or NULL; the caller finishes the connection. */
PGconn *connector_take(struct connector *connector, void **owner);

/*
 * Frees the connector when its thread is idle. One that hangs in a resolver cannot be stopped
 * without waiting: it is left to the end of the process.
 */
void connector_free(struct connector *connector);

#endif
