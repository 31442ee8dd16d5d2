/* SPDX-License-Identifier: PostgreSQL */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "connection.h"
#include "scan.h"

/* The codes in the place of a protocol version that are followed by a one-byte answer. */
#define SSL_REQUEST 80877103u
#define GSS_REQUEST 80877104u
#define CANCEL_REQUEST 80877102u

/* How much of a message has to be there to know what it is about. */
#define ENOUGH 256u

struct typed
{
	char type;
	size_t len; /* of the whole message */
	const char *body;
	size_t body_len; /* of what is there of the body */
};

static uint32_t
get_uint32(const char *bytes)
{
	const unsigned char *b = (const unsigned char *) bytes;

	return (uint32_t) b[0] << 24 | (uint32_t) b[1] << 16 | (uint32_t) b[2] << 8 | b[3];
}

/* Returns false if more bytes are needed. */
static bool
get_message(const char *bytes, size_t len, struct typed *message)
{
	size_t wanted;

	if (len < 5)
		return false;
	message->type = bytes[0];
	message->len = 1 + (size_t) get_uint32(bytes + 1);
	if (message->len < 5)
		message->len = 5;
	wanted = message->len < ENOUGH ? message->len : ENOUGH;
	if (strchr("PQBEC", message->type) != NULL && len < wanted)
		return false;
	message->body = bytes + 5;
	message->body_len = (len < message->len ? len : message->len) - 5;
	return true;
}

/* The text at *offset in the body, and the offset behind it; "" if it does not end there. */
static const char *
get_text(const struct typed *message, size_t *offset)
{
	const char *text = message->body + *offset;
	const char *end =
		*offset < message->body_len ? memchr(text, '\0', message->body_len - *offset) : NULL;

	if (end == NULL)
		return "";
	*offset += (size_t) (end - text) + 1;
	return text;
}

static bool
is_commit(const char *text)
{
	while (isspace((unsigned char) *text))
		text++;
	if (strncasecmp(text, "COMMIT", 6) != 0)
		return false;
	text += 6;
	return text[strspn(text, "; \t\r\n")] == '\0';
}

static void
see_parse(struct stream *stream, const struct typed *message, uint64_t position)
{
	struct postgres_state *state = &stream->connection->postgres;
	size_t offset = 0;
	const char *name = get_text(message, &offset);
	bool commit = is_commit(get_text(message, &offset));

	if (commit && strlen(name) < sizeof(state->commit_statement))
	{
		strcpy(state->commit_statement, name);
		state->has_commit_statement = true;
		/* A statement prepared under a name is run later, perhaps often. */
		if (*name == '\0')
			connection_cue(stream, CUE_COMMIT_QUERY, position);
	}
	else if (state->has_commit_statement && strcmp(name, state->commit_statement) == 0)
		state->has_commit_statement = false;
}

static void
see_bind(struct stream *stream, const struct typed *message, uint64_t position)
{
	struct postgres_state *state = &stream->connection->postgres;
	size_t offset = 0;
	const char *statement;

	get_text(message, &offset);
	statement = get_text(message, &offset);
	state->commit_bound =
		state->has_commit_statement && strcmp(statement, state->commit_statement) == 0;
	if (state->commit_bound && *statement != '\0')
		connection_cue(stream, CUE_COMMIT_QUERY, position);
}

/* A COMMIT is sent as a whole: its answer is due before that of the next Sync. */
static void
commit_sent(struct stream *stream, uint64_t end)
{
	struct postgres_state *state = &stream->connection->postgres;

	state->commit_running = false;
	state->commit_due = true;
	state->commit_sync = state->syncs_sent;
	stream->connection->proxy->totals.commits++;
	connection_cue(stream, CUE_COMMIT_SENT, end);
}

/* A message that the server answers with ReadyForQuery when it is through. */
static void
see_sync(struct stream *stream, uint64_t end)
{
	struct postgres_state *state = &stream->connection->postgres;

	state->syncs_sent++;
	if (state->commit_running)
		commit_sent(stream, end);
}

static void
see_client(struct stream *stream, const struct typed *message, uint64_t position)
{
	struct postgres_state *state = &stream->connection->postgres;
	size_t offset = 0;

	switch (message->type)
	{
		case 'P':
			see_parse(stream, message, position);
			break;
		case 'B':
			see_bind(stream, message, position);
			break;
		case 'E':
			state->commit_running |= state->commit_bound;
			break;
		case 'Q':
			state->commit_running = is_commit(get_text(message, &offset));
			if (state->commit_running)
				connection_cue(stream, CUE_COMMIT_QUERY, position);
			see_sync(stream, position + message->len);
			break;
		case 'S':
		case 'F':
			see_sync(stream, position + message->len);
			break;
		default:
			break;
	}
}

/* The packets before the first message have no type. */
static size_t
scan_startup(struct postgres_state *state, const char *bytes, size_t len)
{
	uint32_t code;

	if (len < 8 || len < get_uint32(bytes))
		return 0;
	code = get_uint32(bytes + 4);
	state->opaque = code == CANCEL_REQUEST;
	state->started = code != SSL_REQUEST && code != GSS_REQUEST;
	/* The startup packet is answered by ReadyForQuery too. */
	state->syncs_sent = state->started;
	return get_uint32(bytes);
}

static bool
answer_due(const struct postgres_state *state)
{
	return state->syncs_answered < state->syncs_sent;
}

size_t
postgres_scan_client(struct stream *stream, const char *bytes, size_t len)
{
	struct postgres_state *state = &stream->connection->postgres;
	struct typed message;
	size_t done = 0;

	if (!state->started && !state->opaque)
		return scan_startup(state, bytes, len);
	if (state->opaque)
		return len;
	while (done < len && get_message(bytes + done, len - done, &message))
	{
		if (message.type != 'X' && message.type != 'p' && !answer_due(state) && !state->sending)
		{
			state->sending = true;
			stream->connection->proxy->totals.round_trips++;
		}
		see_client(stream, &message, stream->scanned + done);
		done += message.len;
	}
	return done;
}

static void
see_server(struct stream *stream, const struct typed *message, uint64_t position)
{
	struct postgres_state *state = &stream->connection->postgres;
	size_t offset = 0;
	const char *tag;

	if (message->type == 'Z')
	{
		state->syncs_answered++;
		state->sending = false;
		if (state->syncs_answered >= state->commit_sync)
			state->commit_due = false;
	}
	if (message->type != 'C' || !state->commit_due)
		return;
	tag = get_text(message, &offset);
	if (strcmp(tag, "COMMIT") != 0 && strcmp(tag, "ROLLBACK") != 0)
		return;
	state->commit_due = false;
	connection_cue(stream, CUE_COMMIT_ANSWER, position);
	connection_cue(stream, CUE_COMMIT_ANSWERED, position + message->len);
}

size_t
postgres_scan_server(struct stream *stream, const char *bytes, size_t len)
{
	struct postgres_state *state = &stream->connection->postgres;
	struct typed message;
	size_t done = 0;

	if (!state->started)
	{
		/* The one byte that answers a request for encryption. */
		state->opaque |= len > 0 && (bytes[0] == 'S' || bytes[0] == 'G');
		return len;
	}
	if (state->opaque)
		return len;
	while (done < len && get_message(bytes + done, len - done, &message))
	{
		see_server(stream, &message, stream->scanned + done);
		done += message.len;
	}
	return done;
}
