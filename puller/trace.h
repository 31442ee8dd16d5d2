/* SPDX-License-Identifier: PostgreSQL */
/*
 * The trace context of a message: W3C's traceparent, in the attribute that Google's clients write
 * or in one of its own name.
 */
#ifndef INBOX_TRACE_H
#define INBOX_TRACE_H

#include <stdbool.h>

#define TRACE_SIZE 56

/* "attributes" is a JSON object as text, or NULL. NULL when there is none that is well-formed. */
const char *trace_find(const char *attributes, char out[TRACE_SIZE]);

#endif
