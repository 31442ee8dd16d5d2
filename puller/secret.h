/* SPDX-License-Identifier: PostgreSQL */
/* A server may quote what it was sent, and what it says is logged. */
#ifndef INBOX_SECRET_H
#define INBOX_SECRET_H

#include <stdbool.h>

#include "credential.h"

/* What is said in its place. */
#define SECRET_NOT_SHOWN "(not shown, as it repeats what it was sent)"

/* True when a text has a secret (NULL: none) in it, as it is or as a form has it. */
bool secret_is_repeated(const char *text, const char *secret);

/* True when a text has a secret of the credential in it, or what was "sent" (NULL: nothing more). */
bool secret_is_in(const char *text, const struct credential *credential, const char *sent);

#endif
