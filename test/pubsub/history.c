/* SPDX-License-Identifier: PostgreSQL */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "buf.h"
#include "entry.h"
#include "history.h"
#include "memory.h"
#include "message.h"
#include "moment.h"
#include "subscription.h"
#include "timer.h"

struct history
{
	int fd;
	char *path;
	uint64_t sequence;
	struct buf pending;
};

struct history *
history_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	struct history *history;

	if (fd < 0)
	{
		fprintf(stderr, "cannot write the history to %s: %s\n", path, strerror(errno));
		return NULL;
	}
	history = memory_get(sizeof(*history));
	history->fd = fd;
	history->path = memory_copy(path);
	return history;
}

const char *
history_path(const struct history *history)
{
	return history->path;
}

static struct buf *
begin(struct history *history, const char *event)
{
	char at[MOMENT_SIZE];

	moment_format(moment_now() / 1000 * 1000, at);
	buf_printf(&history->pending, "{\"seq\":%" PRIu64 ",\"at\":\"%s\",\"event\":\"%s\"",
			   ++history->sequence, at, event);
	return &history->pending;
}

static void
add_text(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, ",\"%s\":", name);
	buf_json(out, text, strlen(text));
}

static void
add_message(struct buf *out, uint64_t id)
{
	buf_printf(out, ",\"messageId\":\"%" PRIu64 "\"", id);
}

static void
end(struct history *history)
{
	buf_text(&history->pending, "}\n");
}

void
history_publish(struct history *history, const char *topic, const struct message *message,
				const struct subscription *source)
{
	struct buf *out;

	if (history == NULL)
		return;
	out = begin(history, "publish");
	add_text(out, "topic", topic);
	add_message(out, message->id);
	if (message->ordering_key != NULL)
		add_text(out, "orderingKey", message->ordering_key);
	if (message->attributes != NULL)
		buf_printf(out, ",\"attributes\":%s",
				   json_object_to_json_string_ext(message->attributes,
												  JSON_C_TO_STRING_PLAIN |
													  JSON_C_TO_STRING_NOSLASHESCAPE));
	buf_printf(out, ",\"bytes\":%zu", message->size);
	if (source != NULL)
		add_text(out, "deadLetterOf", source->name);
	end(history);
}

void
history_deliver(struct history *history, const struct entry *entry, const char *ack_id,
				int64_t lease)
{
	struct buf *out;

	if (history == NULL)
		return;
	out = begin(history, "deliver");
	add_text(out, "subscription", entry->subscription->name);
	add_message(out, entry->message->id);
	add_text(out, "ackId", ack_id);
	buf_printf(out, ",\"lease\":%.3f,\"attempt\":%d", (double) lease / SECOND, entry->failures + 1);
	end(history);
}

void
history_answer(struct history *history, const struct subscription *subscription, const char *ack_id,
			   size_t len, uint64_t message, int64_t seconds, const char *outcome)
{
	struct buf *out;

	if (history == NULL)
		return;
	out = begin(history, seconds < 0 ? "ack" : "modack");
	add_text(out, "subscription", subscription->name);
	buf_text(out, ",\"ackId\":");
	buf_json(out, ack_id, len);
	if (message != 0)
		add_message(out, message);
	if (seconds >= 0)
		buf_printf(out, ",\"seconds\":%" PRId64, seconds);
	add_text(out, "outcome", outcome);
	end(history);
}

void
history_entry(struct history *history, const char *event, const struct entry *entry)
{
	struct buf *out;

	if (history == NULL)
		return;
	out = begin(history, event);
	add_text(out, "subscription", entry->subscription->name);
	add_message(out, entry->message->id);
	end(history);
}

void
history_fault(struct history *history, size_t rule, const char *action, const char *event,
			  uint64_t occurrence)
{
	struct buf *out;

	if (history == NULL)
		return;
	out = begin(history, "fault");
	buf_printf(out, ",\"rule\":%zu", rule);
	add_text(out, "do", action);
	add_text(out, "on", event);
	buf_printf(out, ",\"occurrence\":%" PRIu64, occurrence);
	end(history);
}

void
history_lookup(struct history *history, const char *database, const char *outcome,
			   const char *subscription, const char *key, uint64_t message)
{
	struct buf *out;

	if (history == NULL)
		return;
	out = begin(history, "lookup");
	add_text(out, "database", database);
	add_text(out, "outcome", outcome);
	add_text(out, "subscription", subscription);
	add_text(out, "key", key);
	add_message(out, message);
	end(history);
}

void
history_flush(struct history *history)
{
	size_t done = 0;

	if (history == NULL)
		return;
	while (done < history->pending.len)
	{
		ssize_t len = write(history->fd, history->pending.data + done, history->pending.len - done);

		if (len < 0 && errno != EINTR)
		{
			fprintf(stderr, "cannot write the history to %s: %s\n", history->path, strerror(errno));
			exit(3);
		}
		done += len > 0 ? (size_t) len : 0;
	}
	history->pending.len = 0;
}

void
history_close(struct history *history)
{
	if (history == NULL)
		return;
	history_flush(history);
	close(history->fd);
	buf_free(&history->pending);
	free(history->path);
	free(history);
}
