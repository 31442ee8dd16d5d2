/* SPDX-License-Identifier: PostgreSQL */
/*
 * Which versions of the puller, of the extension's library and of its objects work together.
 */
#ifndef INBOX_VERSION_H
#define INBOX_VERSION_H

#include <stdbool.h>

#include "db.h"

/* True when another part's version, NULL where it is unknown, differs in its last number at most. */
bool version_fits(const char *other);

/* What makes them fit. */
const char *version_remedy(const struct db_facts *facts);

#endif
