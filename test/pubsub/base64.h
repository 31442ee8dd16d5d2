/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_BASE64_H
#define PUBSUB_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Publishers may use either alphabet, with or without padding; subscribers always get the standard
 * one, padded. Returns false if the text is neither. The result is owned by the caller; *bytes is
 * how many bytes it stands for.
 */
bool base64_normalise(const char *text, size_t len, char **result, size_t *result_len,
					  size_t *bytes);

/* Writes the URL-safe form of the bytes, whose number is a multiple of 3: 4 characters for 3. */
void base64_encode_url(const uint8_t *bytes, size_t len, char *out);

/* The reverse, for a multiple of 4 characters; false if one is not of that alphabet. */
bool base64_decode_url(const char *text, size_t len, uint8_t *out);

#endif
