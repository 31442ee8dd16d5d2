/* SPDX-License-Identifier: PostgreSQL */
/*
 * Access tokens for the database: with IAM database authentication, a managed PostgreSQL takes one
 * as the password of a service account's role. They are for the same credentials as those for
 * Pub/Sub; one for each new connection, so that none is too old.
 */
#ifndef INBOX_IAM_H
#define INBOX_IAM_H

#include "config.h"
#include "db.h"
#include "http.h"

/* "token" is NULL when none could be had, which has been logged then; never log it. */
typedef void (*iam_callback)(void *context, const char *token);

/* Asks for a token; the callback comes once, unless the process ends before. */
void iam_ask(struct http *http, const struct config *config, iam_callback callback, void *context);

/* Begins to connect: at once, or with a token as the password when there is one. */
void iam_connect(struct http *http, const struct config *config, struct db *db);

#endif
