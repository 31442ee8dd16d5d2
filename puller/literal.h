/* SPDX-License-Identifier: PostgreSQL */
/*
 * JSON string literals, quotes included: finding where one ends, and reading what it stands for.
 */
#ifndef INBOX_LITERAL_H
#define INBOX_LITERAL_H

#include <stddef.h>

/* What a literal, or a larger piece of JSON text, holds that must not go on as it is. */
enum flaw
{
	FLAW_NUL = 1 << 0,		 /* U+0000, which no text or jsonb can hold */
	FLAW_SURROGATE = 1 << 1, /* half of a surrogate pair */
	FLAW_UTF8 = 1 << 2,		 /* bytes that are not UTF-8 (RFC 3629) */
	FLAW_CONTROL = 1 << 3,	 /* a control character that is not escaped */
	FLAW_WORD = 1 << 4,		 /* a bare word JSON does not know, or a malformed number */
	FLAW_DUPLICATE = 1 << 5, /* the same name twice in one object */
	FLAW_CROWDED = 1 << 6	 /* more names than are looked at for duplicates */
};

/* What is sound JSON, but nothing PostgreSQL can store as text or jsonb. */
#define FLAWS_OF_STORAGE (FLAW_NUL | FLAW_SURROGATE)

/*
 * The byte behind the literal that starts at "at" (its opening quote), or NULL with "fault" set to
 * a static sentence when it has no end before "end" or an escape that JSON does not know. Its
 * flaws are added to "flaws". A byte that is not UTF-8 counts as one character, so it can hide no
 * quote.
 */
const char *literal_scan(const char *at, const char *end, unsigned *flaws, const char **fault);

/* The byte behind a literal that literal_scan() has passed. */
const char *literal_skip(const char *at, const char *end);

/* Reads a literal that literal_scan() has passed, byte by byte, escapes resolved to UTF-8. */
struct literal_reader
{
	const char *at;	 /* behind the opening quote */
	const char *end; /* at the closing quote */
	unsigned char pending[4];
	unsigned char pending_size;
	unsigned char pending_at;
};

void literal_open(struct literal_reader *reader, const char *literal, size_t length);

/* The next byte, 0 to 255, or -1 at the end. Half a surrogate pair is given as three bytes. */
int literal_next(struct literal_reader *reader);

#endif
