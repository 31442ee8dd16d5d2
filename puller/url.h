/* SPDX-License-Identifier: PostgreSQL */
/*
 * What matters about an address that secrets are sent to.
 */
#ifndef INBOX_URL_H
#define INBOX_URL_H

#include <stdbool.h>

/* True for https://, and for http:// to this machine itself: nobody can listen on the way. */
bool url_keeps_secrets(const char *url);

/* Scheme and host alone, to be shown: a path or a query may hold a secret. free() it. */
char *url_origin(const char *url) __attribute__((returns_nonnull));

#endif
