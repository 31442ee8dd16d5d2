/* SPDX-License-Identifier: PostgreSQL */
/*
 * The configuration as a whole: what is required, what depends on what, what excludes what.
 */
#ifndef INBOX_CONFIG_CHECK_H
#define INBOX_CONFIG_CHECK_H

#include <libpq-fe.h>

#include "config.h"
#include "fault.h"

/* Fills in what depends on other options, and checks everything. */
bool config_check(struct config *config, struct fault *fault) __attribute__((warn_unused_result));

/*
 * The parts of --dbname, for PQconninfoFree(), or NULL when it cannot be parsed. A bare name is
 * parsed as libpq takes it: as the name of the database.
 */
PQconninfoOption *config_parse_dbname(const char *dbname);

#endif
