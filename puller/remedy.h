/* SPDX-License-Identifier: PostgreSQL */
/*
 * What to do where there is no token.
 */
#ifndef INBOX_REMEDY_H
#define INBOX_REMEDY_H

#include <stdbool.h>

#include "credential.h"

/* For people; of the first credential, or of the impersonation that follows. */
const char *remedy_of(enum credential_kind kind, bool impersonating);

#endif
