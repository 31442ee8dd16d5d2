/* SPDX-License-Identifier: PostgreSQL */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "acked.h"
#include "buf.h"
#include "memory.h"

void
acked_add(struct acked_batch *batch, const char *key, uint64_t message, const char *subscription)
{
	struct acked *acked;

	if (batch->count == batch->room)
	{
		batch->room = batch->room ? 2 * batch->room : 16;
		batch->acked = memory_resize(batch->acked, batch->room * sizeof(*batch->acked));
	}
	acked = &batch->acked[batch->count++];
	acked->key = memory_copy(key);
	acked->message = message;
	acked->subscription = memory_copy(subscription);
	acked->found = false;
}

static void
add_quoted(struct buf *out, const char *text)
{
	buf_text(out, "\"");
	for (; *text != '\0'; text++)
	{
		if (*text == '"' || *text == '\\')
			buf_text(out, "\\");
		buf_add(out, text, 1);
	}
	buf_text(out, "\"");
}

char *
acked_keys(const struct acked_batch *batch)
{
	struct buf out = {0};

	for (size_t i = 0; i < batch->count; i++)
	{
		buf_text(&out, i == 0 ? "{" : ",");
		add_quoted(&out, batch->acked[i].key);
	}
	buf_text(&out, "}");
	return out.data;
}

char *
acked_messages(const struct acked_batch *batch)
{
	struct buf out = {0};

	for (size_t i = 0; i < batch->count; i++)
		buf_printf(&out, "%s%" PRIu64, i == 0 ? "{" : ",", batch->acked[i].message);
	buf_text(&out, "}");
	return out.data;
}

void
acked_find(struct acked_batch *batch, const char *key)
{
	/* The keys come back in the order they were asked for, less those that are not there. */
	for (size_t i = 0; i < batch->count; i++)
	{
		size_t place = (batch->hint + i) % batch->count;

		if (!batch->acked[place].found && strcmp(batch->acked[place].key, key) == 0)
		{
			batch->acked[place].found = true;
			batch->hint = place + 1;
			return;
		}
	}
}

void
acked_forget(struct acked_batch *batch)
{
	batch->hint = 0;
	for (size_t i = 0; i < batch->count; i++)
		batch->acked[i].found = false;
}

void
acked_free(struct acked_batch *batch)
{
	for (size_t i = 0; batch != NULL && i < batch->count; i++)
	{
		free(batch->acked[i].key);
		free(batch->acked[i].subscription);
	}
	if (batch != NULL)
		free(batch->acked);
	free(batch);
}
