/* SPDX-License-Identifier: PostgreSQL */
/*
 * Payments by number: the same number has always the same key and payload, so that a second run
 * over the same numbers is one of duplicates. They come as parameters in binary format.
 */
#ifndef BENCH_PAYMENT_H
#define BENCH_PAYMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

enum payment_keys
{
	PAYMENT_ORDERED, /* 24 bytes, of a time and a counter */
	PAYMENT_RANDOM,	 /* 45 bytes, of a prefix and a random UUID, version 4 */
	PAYMENT_UUID7,	 /* 36 bytes, of a time and a random number */
	PAYMENT_COUNTER	 /* 10 digits */
};

struct payment_kind
{
	enum payment_keys keys;
	size_t payload; /* bytes of the JSON document, at least 64 */
	unsigned accounts;
	bool changed; /* another payload than the same payment has otherwise */
};

/* The columns of a claim, as arrays. */
enum
{
	PAYMENT_COLUMN_KEY,			 /* text[] */
	PAYMENT_COLUMN_HASH,		 /* bigint[] */
	PAYMENT_COLUMN_PUBLISH_TIME, /* timestamptz[] */
	PAYMENT_COLUMNS
};

/* Payments first..first+count-1 as an array of inbox_message, whose type has the oid "element". */
void payment_messages(struct buffer *out, unsigned element, const struct payment_kind *kind,
					  uint64_t first, size_t count);

/* One column of the claims of these payments. */
void payment_column(struct buffer *out, int column, const struct payment_kind *kind, uint64_t first,
					size_t count);

#endif
