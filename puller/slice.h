/* SPDX-License-Identifier: PostgreSQL */
/*
 * The text of one JSON value within a larger text that scan.c has passed, and what can be read
 * from it without building a tree. Nothing here checks grammar again.
 */
#ifndef INBOX_SLICE_H
#define INBOX_SLICE_H

#include <stdbool.h>
#include <stddef.h>

struct slice
{
	const char *start; /* the value's first byte, a string's opening quote; NULL: no value */
	size_t length;
};

/* '{', '[', '"', or what a bare word starts with: 'n' for null; '\0' without a value. */
static inline char
slice_kind(const struct slice *slice)
{
	return slice->start != NULL ? slice->start[0] : '\0';
}

/* Steps through an object or an array. */
struct slice_walk
{
	const char *at;
	const char *end;
};

void slice_enter(struct slice_walk *walk, const struct slice *container);
bool slice_next_member(struct slice_walk *walk, struct slice *name, struct slice *value);
bool slice_next_element(struct slice_walk *walk, struct slice *value);

/* Orders string values by the bytes they stand for: <0, 0, >0. */
int slice_compare(const struct slice *left, const struct slice *right);

/* Whether a string value stands for exactly the "size" bytes at "text". */
bool slice_equals(const struct slice *string, const char *text, size_t size);

/* What a string value stands for, with a NUL behind it; free() it. */
char *slice_text(const struct slice *string, size_t *size);

/* Finds a member by name. Returns how often the name occurs; "value" is the last one's. */
size_t slice_find(const struct slice *object, const char *name, size_t size, struct slice *value);

#endif
