/* SPDX-License-Identifier: PostgreSQL */
/*
 * A message while it is decoded: reading members of its envelope, and noting what is wrong.
 */
#ifndef INBOX_DRAFT_H
#define INBOX_DRAFT_H

#include "key.h"
#include "message.h"
#include "scan.h"
#include "slice.h"

struct draft
{
	const struct scan_element *element;
	struct message *message;
	struct slice envelope;	  /* what is kept of a defective one; the same at each delivery */
	struct key_fields fields; /* for key_find() */
};

/* A member of an object: the last one of its name, and how many there are. */
struct draft_member
{
	const char *name;
	struct slice value;
	size_t times;
};

enum draft_reading
{
	READING_ABSENT,
	READING_FINE,
	READING_LOST /* it is there, but unusable; the message has a defect */
};

/* Fills in the members that are named already. */
void draft_collect(const struct slice *object, struct draft_member *members, size_t count);

/* Whether a member is there, once, of a kind ('"' or '{'), and without a flaw; null is absent. */
enum draft_reading draft_read(struct draft *draft, const struct draft_member *member, char kind);

/*
 * A defect, with the envelope where that is not all understood. The first one stays. draft_set_defect() takes "detail" over;
 * draft_lose() says that the member "what", and returns READING_LOST.
 */
void draft_set_defect(struct draft *draft, enum message_defect defect, char *detail);
void draft_set_flawed(struct draft *draft, unsigned flaws, const char *where);
enum draft_reading draft_lose(struct draft *draft, const struct draft_member *member,
							  const char *what);

#endif
