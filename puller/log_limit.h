/* SPDX-License-Identifier: PostgreSQL */
/*
 * How often one event may be logged: 500 lines at once and 20 a second from then on. A stream of
 * equal lines hides the others and fills the disk; how many were left out is told in their place.
 */
#ifndef INBOX_LOG_LIMIT_H
#define INBOX_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_LIMIT_BURST 500
#define LOG_LIMIT_PER_SECOND 20

/* True when a line of this event, a literal, may be written now; false: it is counted instead. */
bool log_limit_take(const char *event, int64_t now_ms);

/*
 * The next event of which lines have been left out for ten seconds, or at all when asked for
 * "at_once"; NULL: there is none. "count" is how many, and is counted no more.
 */
const char *log_limit_next(int64_t now_ms, bool at_once, uint64_t *count);

#endif
