/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_BUF_H
#define PUBSUB_BUF_H

#include <stddef.h>

/* Bytes that grow. All zero is an empty buffer; data is NUL-terminated once anything was added. */
struct buf
{
	char *data;
	size_t len;
	size_t room;
};

void buf_reserve(struct buf *buf, size_t more);
void buf_add(struct buf *buf, const void *bytes, size_t len);
void buf_text(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends the bytes as a JSON string, quotes included. */
void buf_json(struct buf *buf, const char *bytes, size_t len);

/* Takes every blank and line break outside strings out of the JSON text from offset on. */
void buf_compact_json(struct buf *buf, size_t offset);

void buf_free(struct buf *buf);

#endif
