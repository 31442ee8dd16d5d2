/* SPDX-License-Identifier: PostgreSQL */
/*
 * Scanning pieces of JSON in tests.
 */
#ifndef INBOX_TEST_SCANNED_H
#define INBOX_TEST_SCANNED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "names.h"
#include "scan.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Text in memory of exactly its size, so that a sanitizer sees a byte read behind it. */
struct text
{
	char *bytes;
	size_t size;
};

static inline struct text
exact_text(const char *bytes, size_t size)
{
	struct text text = {malloc(size > 0 ? size : 1), size};

	assert_non_null(text.bytes);
	memcpy(text.bytes, bytes, size);
	return text;
}

static inline bool
is_document(const char *bytes, size_t size)
{
	struct text text = exact_text(bytes, size);
	struct slice root;
	struct scan_fault fault = {0};
	bool sound = scan_document(text.bytes, text.size, &root, &fault);

	assert_true(sound || (fault.what != NULL && fault.offset <= size));
	free(text.bytes);
	return sound;
}

/* How many elements, or -1; the flaws of the first one in "flaws". */
static inline int
scan(const char *bytes, size_t size, unsigned *flaws)
{
	struct text text = exact_text(bytes, size);
	struct scan_elements elements;
	struct scan_fault fault = {0};
	int count = -1;

	*flaws = 0;
	if (scan_response(text.bytes, text.size, &elements, &fault))
	{
		count = (int) elements.count;
		*flaws = count > 0 ? elements.element[0].flaws : 0;
		scan_elements_free(&elements);
	}
	else
	{
		assert_non_null(fault.what);
		assert_true(fault.offset <= size);
		assert_null(elements.element);
	}
	free(text.bytes);
	return count;
}

/* The flaws of the value "json" as the only element of a response. */
static inline unsigned
flaws_of(const char *json, size_t size)
{
	static const char before[] = "{\"receivedMessages\":[";
	struct buffer response;
	unsigned flaws;

	buffer_init(&response, 1 << 24);
	assert_true(buffer_append(&response, before, sizeof(before) - 1));
	assert_true(buffer_append(&response, json, size));
	assert_true(buffer_append(&response, "]}", 2));
	if (scan(response.bytes, response.size, &flaws) != 1)
	{
		fail_msg("not one element: %s", json);
	}
	buffer_free(&response);
	return flaws;
}

/* Appends "piece" so many times. */
static inline void
append_times(struct buffer *buffer, const char *piece, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		assert_true(buffer_append(buffer, piece, strlen(piece)));
	}
}

#endif
