/* SPDX-License-Identifier: PostgreSQL */
/* Text that grows in a buffer, for answers over HTTP. Past the buffer's limit it is cut. */
#ifndef INBOX_TEXT_H
#define INBOX_TEXT_H

#include "buffer.h"

/* printf behind what is there. */
void text_add(struct buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
