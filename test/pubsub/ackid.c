/* SPDX-License-Identifier: PostgreSQL */
#include <string.h>

#include "ackid.h"
#include "base64.h"
#include "random.h"

#define WORDS 17
#define BYTES (ACKID_LEN / 4 * 3)

_Static_assert(BYTES <= WORDS * 8, "the words have to fill the ack id");

/*
 * The first word is drawn from the three numbers; it and the secret give a key stream that hides
 * them and, as it is, fills the rest. So an id tells nothing, looks nothing like the next one, and
 * one changed character shows.
 */
static void
make_words(uint64_t secret, uint64_t first, const struct ackid *id, uint64_t words[WORDS])
{
	struct random stream = {first ^ secret};

	words[0] = first;
	for (int i = 1; i < WORDS; i++)
		words[i] = random_next(&stream);
	words[1] ^= id->subscription;
	words[2] ^= id->position;
	words[3] ^= id->lease;
}

void
ackid_format(uint64_t secret, const struct ackid *id, char *out)
{
	struct random draw = {secret};
	uint64_t words[WORDS];
	uint8_t bytes[BYTES];

	draw.state ^= id->subscription;
	draw.state = random_next(&draw) ^ id->position;
	draw.state = random_next(&draw) ^ id->lease;
	make_words(secret, random_next(&draw), id, words);
	memcpy(bytes, words, BYTES);
	base64_encode_url(bytes, BYTES, out);
}

bool
ackid_parse(uint64_t secret, const char *text, size_t len, struct ackid *id)
{
	struct ackid none = {0};
	uint64_t words[WORDS] = {0};
	uint64_t stream[WORDS];
	uint8_t bytes[BYTES];
	char again[ACKID_LEN];

	if (len != ACKID_LEN || !base64_decode_url(text, len, bytes))
		return false;
	memcpy(words, bytes, BYTES);
	make_words(secret, words[0], &none, stream);
	id->subscription = words[1] ^ stream[1];
	id->position = words[2] ^ stream[2];
	id->lease = words[3] ^ stream[3];
	ackid_format(secret, id, again);
	return memcmp(again, text, ACKID_LEN) == 0;
}
