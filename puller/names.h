/* SPDX-License-Identifier: PostgreSQL */
/*
 * The member names of the objects that are open while a text is scanned, to find the same name
 * twice in one object. Names are compared as what they stand for, escapes resolved.
 */
#ifndef INBOX_NAMES_H
#define INBOX_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "slice.h"

/* Ten times what the service allows as attributes of a message. */
#define NAMES_MAX 1024

struct names
{
	struct slice name[NAMES_MAX];
	size_t count;
};

/* False when there is no room; the name is then not looked at. */
bool names_add(struct names *names, const struct slice *name) __attribute__((warn_unused_result));

/* Whether a name occurs twice behind the first "mark" names; forgets these names. */
bool names_close(struct names *names, size_t mark);

#endif
