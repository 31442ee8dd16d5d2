/* SPDX-License-Identifier: PostgreSQL */
/*
 * Allocation that cannot fail: out of memory ends the process with status 3 before anything is
 * acknowledged, which is safe. A half-built list of ack ids would not be.
 */
#ifndef INBOX_MEMORY_H
#define INBOX_MEMORY_H

#include <stddef.h>

/* Zeroed memory; free() it. */
void *memory_new(size_t size) __attribute__((returns_nonnull, malloc));

void *memory_resize(void *old, size_t size) __attribute__((returns_nonnull));

/* A copy with a NUL behind it. */
char *memory_copy(const char *bytes, size_t size) __attribute__((returns_nonnull, malloc));

/* A copy of a string; NULL gives NULL. */
char *memory_copy_text(const char *text);

/* For what other libraries allocate and could not: says so, and exits. */
void memory_exhausted(void) __attribute__((noreturn));

/* The same where it is NULL; returns what it is given. */
void *memory_checked(void *memory) __attribute__((returns_nonnull));

/* Overwrites and frees a secret; NULL is fine. */
void memory_forget(char *secret);

/* printf into fresh memory. */
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

#endif
