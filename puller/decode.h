/* SPDX-License-Identifier: PostgreSQL */
/*
 * From the bytes of a pull's response to messages. Pure: no I/O, no clock, no global state.
 *
 * scan.c first checks the response and cuts it into one slice a message; then each slice is read
 * on its own, so that an error condemns one message and not its neighbours. A response that cannot
 * be sliced to its last byte is garbage: nothing in it may be acknowledged.
 */
#ifndef INBOX_DECODE_H
#define INBOX_DECODE_H

#include <stddef.h>

#include "key.h"
#include "message.h"

#define DECODE_ERROR_SIZE 256

struct decode_error
{
	char text[DECODE_ERROR_SIZE]; /* the fact, with the offset; never bytes of a payload */
};

/*
 * Appends the messages of one response to "out", in order, on no board yet; the caller owns them.
 * An empty body, {} and an empty receivedMessages are zero messages. Returns how many, or -1 with
 * "error" set and nothing appended when the response is garbage.
 *
 * A message with a defect carries its reason and, unless all it lacks is a key, its raw envelope;
 * whatever of its fields could be stored is set, the key only when no rule before it could have hit
 * something unreadable. One without a usable messageId is named "unknown-" and 16 hexadecimal
 * digits of the SHA-256 of its "message", which stays the same when it is delivered again.
 * Attributes are the service's text, byte for byte. Empty data is absent data, as the service makes
 * no difference.
 *
 * An element without a usable ackId is left out: it cannot be acknowledged, and the service
 * delivers it again. "skipped" counts these.
 */
int decode_pull_response(const char *body, size_t size, const struct key_rules *keys,
						 struct message_list *out, size_t *skipped, struct decode_error *error);

#endif
