/* SPDX-License-Identifier: PostgreSQL */
/*
 * Times as Pub/Sub writes them: RFC 3339 in UTC, always with 'Z', 0 to 9 fractional digits.
 */
#ifndef INBOX_TIMESTAMP_H
#define INBOX_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Microseconds since 1970, years 1 to 9999. What is finer is cut off, as PostgreSQL holds no more.
 * False for anything else, a leap second among it: the service smears those.
 */
bool timestamp_parse(const char *text, int64_t *microseconds) __attribute__((warn_unused_result));

#define TIMESTAMP_SIZE 48

/* Writes it the same way, to the microsecond, into "text"; returns that, or NULL for INT64_MIN. */
const char *timestamp_format(int64_t microseconds, char text[TIMESTAMP_SIZE]);

#endif
