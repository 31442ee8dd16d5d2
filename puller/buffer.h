/* SPDX-License-Identifier: PostgreSQL */
/*
 * Bytes that grow up to a stated maximum. Every growing thing in the puller is one of these.
 */
#ifndef INBOX_BUFFER_H
#define INBOX_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer
{
	char *bytes; /* NUL-terminated behind "size"; NULL while empty */
	size_t size;
	size_t room;
	size_t limit;
};

void buffer_init(struct buffer *buffer, size_t limit);

/* False, with nothing appended, when the limit would be passed. */
bool buffer_append(struct buffer *buffer, const void *bytes, size_t size)
	__attribute__((warn_unused_result));

/* Frees the bytes; the buffer can be used again. */
void buffer_free(struct buffer *buffer);

#endif
