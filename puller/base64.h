/* SPDX-License-Identifier: PostgreSQL */
/*
 * Base64 as Pub/Sub emits it (RFC 4648 section 4): the standard alphabet, always padded, nothing
 * between. Everything else is refused, also what a lenient decoder would take: a payload decoded
 * in part would be applied, and its key would protect the wrong effect for ever.
 */
#ifndef INBOX_BASE64_H
#define INBOX_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* How many bytes "size" characters decode to at most. */
#define BASE64_DECODED_MAX(size) ((size) / 4 * 3)

/*
 * Decodes "text" into "bytes", which has room for BASE64_DECODED_MAX(size). False when the text
 * is not canonical, padded base64; "bytes" is then undefined.
 */
bool base64_decode(const char *text, size_t size, unsigned char *bytes, size_t *decoded)
	__attribute__((warn_unused_result));

/* The other way round, as text; free() it. */
char *base64_encode(const void *bytes, size_t size) __attribute__((returns_nonnull));

#endif
