/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_MEMORY_H
#define PUBSUB_MEMORY_H

#include <stddef.h>

/*
 * Allocation that cannot fail: a test instrument that has run out of memory has nothing left to
 * measure, so it says so and exits. Everything is released with free().
 */
void *memory_get(size_t size); /* zeroed */
void *memory_resize(void *old, size_t size);
char *memory_copy(const char *text);
char *memory_copy_bytes(const char *bytes, size_t len); /* adds a final NUL */

#endif
