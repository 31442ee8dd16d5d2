/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_MOMENT_H
#define PUBSUB_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

/* Points in time on the wall clock, in nanoseconds since 1970, and their RFC 3339 form. */
#define MOMENT_SIZE 36

int64_t moment_now(void);

/* Writes "2026-11-30T07:50:22.724Z": UTC, three digits of a second or nine where they differ. */
void moment_format(int64_t moment, char out[MOMENT_SIZE]);

/* Accepts any offset and up to nine digits of a second. */
bool moment_parse(const char *text, int64_t *moment);

#endif
