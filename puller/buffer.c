/* SPDX-License-Identifier: PostgreSQL */
#include "buffer.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

void
buffer_init(struct buffer *buffer, size_t limit)
{
	*buffer = (struct buffer){.limit = limit};
}

bool
buffer_append(struct buffer *buffer, const void *bytes, size_t size)
{
	size_t room = buffer->room > 0 ? buffer->room : 256;

	if (size > buffer->limit - buffer->size)
	{
		return false;
	}
	while (room < buffer->size + size + 1)
	{
		room *= 2;
	}
	if (room > buffer->room)
	{
		buffer->bytes = memory_resize(buffer->bytes, room);
		buffer->room = room;
	}
	if (size > 0)
	{
		memcpy(buffer->bytes + buffer->size, bytes, size);
	}
	buffer->size += size;
	buffer->bytes[buffer->size] = '\0';
	return true;
}

void
buffer_free(struct buffer *buffer)
{
	free(buffer->bytes);
	buffer_init(buffer, buffer->limit);
}
