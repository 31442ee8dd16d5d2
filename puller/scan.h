/* SPDX-License-Identifier: PostgreSQL */
/*
 * Checks JSON text to its last byte (RFC 8259) and cuts a pull's response into one slice a
 * message. json-c is not enough for this: 0.16 cuts member names at U+0000, turns halves of
 * surrogate pairs into the same character, keeps the last of two members of one name, rounds
 * integers, and takes NaN and overlong UTF-8. Two different keys would become one, and the
 * second message would be lost as a duplicate.
 *
 * What leaves no doubt where a value ends is a flaw of that value (enum flaw) and condemns one
 * message. Everything else is a fault of the whole text.
 *
 * Time is linear in the size of the text, up to the sorting of at most NAMES_MAX names; nesting is
 * bounded by SCAN_DEPTH_MAX. Nothing is allocated but the list of elements.
 */
#ifndef INBOX_SCAN_H
#define INBOX_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "literal.h"
#include "slice.h"

#define SCAN_DEPTH_MAX 512

struct scan_fault
{
	size_t offset;
	const char *what; /* static storage; never bytes of the text */
};

/* An element of receivedMessages. */
struct scan_element
{
	struct slice slice;
	unsigned flaws;
};

struct scan_elements
{
	struct scan_element *element; /* NULL while empty */
	size_t count;
	size_t room;
};

/*
 * Cuts a response. Nothing but white space, {}, and a receivedMessages that is null or empty are
 * zero elements; unknown members are passed over. False with "fault" set, and no elements, when
 * the text is not one JSON object to its last byte, or names receivedMessages twice.
 */
bool scan_response(const char *text, size_t size, struct scan_elements *elements,
				   struct scan_fault *fault) __attribute__((warn_unused_result));

void scan_elements_free(struct scan_elements *elements);

/*
 * Checks that "text" is one JSON value of any kind, which becomes "root". Names that occur twice,
 * U+0000 and halves of surrogate pairs are allowed here, as JSON allows them.
 */
bool scan_document(const char *text, size_t size, struct slice *root, struct scan_fault *fault)
	__attribute__((warn_unused_result));

/* The flaws within one value of a text that has been passed. */
unsigned scan_flaws(const struct slice *slice);

/* The gravest of "flaws" in words, as "U+0000"; NULL when there is none. */
const char *scan_flaw_text(unsigned flaws);

#endif
