/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_ACKID_H
#define PUBSUB_ACKID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ack ids of the real service have 164 to 184 characters of the URL-safe base64 alphabet. */
#define ACKID_LEN 176

/* What an ack id stands for: one delivery of one entry of one subscription. */
struct ackid
{
	uint64_t subscription;
	uint64_t position;
	uint64_t lease;
};

/* Writes ACKID_LEN characters, without a final NUL. */
void ackid_format(uint64_t secret, const struct ackid *id, char *out);

/* False if the text was not made by ackid_format() with this secret. */
bool ackid_parse(uint64_t secret, const char *text, size_t len, struct ackid *id);

#endif
