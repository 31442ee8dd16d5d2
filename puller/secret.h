/* SPDX-License-Identifier: PostgreSQL */
/* A server may quote what it was sent, and what it says is logged. */
#ifndef INBOX_SECRET_H
#define INBOX_SECRET_H

#include <stdbool.h>

#include "credential.h"

/* True when a text has a secret of the credential in it, or what was "sent" (NULL: nothing more). */
bool secret_is_in(const char *text, const struct credential *credential, const char *sent);

#endif
