/* SPDX-License-Identifier: PostgreSQL */
/*
 * Messages in PostgreSQL's binary format: the composite inbox_message and an array of it. Binary,
 * because a text parameter ends at its first NUL without a word, and a payload is bytes.
 */
#ifndef INBOX_RECORD_H
#define INBOX_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "buffer.h"
#include "message.h"

/*
 * Appends one inbox_message. A message that has a raw envelope carries that as the payload, and
 * its key as far as it has one. False when the buffer's limit would be passed.
 */
bool record_append(struct buffer *out, const struct message *message)
	__attribute__((warn_unused_result));

/* Appends an array of inbox_message, whose type has the oid "element". */
bool record_append_array(struct buffer *out, unsigned element, struct message *const *messages,
						 size_t count) __attribute__((warn_unused_result));

#endif
