/* SPDX-License-Identifier: PostgreSQL */
/*
 * The bare words of JSON: numbers, true, false, null.
 */
#ifndef INBOX_WORD_H
#define INBOX_WORD_H

#include <stdbool.h>
#include <stddef.h>

/* How long the run of bytes is that could stand in a word; 0 when "at" begins none. */
size_t word_length(const char *at, const char *end);

/* Whether the word is one JSON knows. */
bool word_is_sound(const char *word, size_t length);

bool word_is(const char *word, size_t length, const char *expected);

/*
 * Whether the word is an integer in its shortest form, of at most "digits" digits: no exponent,
 * no fraction, no leading zero, and not -0, so that one number has one text.
 */
bool word_is_integer(const char *word, size_t length, size_t digits);

#endif
