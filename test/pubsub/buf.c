/* SPDX-License-Identifier: PostgreSQL */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "memory.h"

void
buf_reserve(struct buf *buf, size_t more)
{
	size_t need = buf->len + more + 1;

	if (need <= buf->room)
		return;
	buf->room = need > 2 * buf->room ? need : 2 * buf->room;
	buf->data = memory_resize(buf->data, buf->room);
}

void
buf_add(struct buf *buf, const void *bytes, size_t len)
{
	buf_reserve(buf, len);
	if (len > 0)
		memcpy(buf->data + buf->len, bytes, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void
buf_text(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void
buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0)
		return;
	buf_reserve(buf, (size_t) len);
	va_start(args, format);
	vsnprintf(buf->data + buf->len, (size_t) len + 1, format, args);
	va_end(args);
	buf->len += (size_t) len;
}

static void
add_escape(struct buf *buf, unsigned char byte)
{
	switch (byte)
	{
		case '"':
			buf_text(buf, "\\\"");
			break;
		case '\\':
			buf_text(buf, "\\\\");
			break;
		case '\n':
			buf_text(buf, "\\n");
			break;
		case '\r':
			buf_text(buf, "\\r");
			break;
		case '\t':
			buf_text(buf, "\\t");
			break;
		default:
			buf_printf(buf, "\\u%04x", byte);
	}
}

void
buf_json(struct buf *buf, const char *bytes, size_t len)
{
	size_t plain = 0;

	buf_text(buf, "\"");
	for (size_t i = 0; i < len; i++)
	{
		unsigned char byte = (unsigned char) bytes[i];

		if (byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f)
			continue;
		buf_add(buf, bytes + plain, i - plain);
		add_escape(buf, byte);
		plain = i + 1;
	}
	buf_add(buf, bytes + plain, len - plain);
	buf_text(buf, "\"");
}

void
buf_compact_json(struct buf *buf, size_t offset)
{
	size_t to = offset;
	bool in_string = false;

	for (size_t i = offset; i < buf->len; i++)
	{
		char byte = buf->data[i];

		if (!in_string && (byte == ' ' || byte == '\n'))
			continue;
		if (byte == '"')
			in_string = !in_string;
		buf->data[to++] = byte;
		if (in_string && byte == '\\')
			buf->data[to++] = buf->data[++i];
	}
	buf->len = to;
	if (buf->data != NULL)
		buf->data[to] = '\0';
}

void
buf_free(struct buf *buf)
{
	free(buf->data);
	memset(buf, 0, sizeof(*buf));
}
