/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_LIST_H
#define PUBSUB_LIST_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A doubly linked list through links inside the members. A link that is in no list is all zero;
 * a list head is a link that points at itself when the list is empty.
 */
struct link
{
	struct link *next;
	struct link *prev;
};

/* The structure of the given type of which *pointer is the given field. */
#define OWNER(pointer, type, field) ((type *) ((char *) (pointer) -offsetof(type, field)))

static inline void
list_init(struct link *head)
{
	head->next = head->prev = head;
}

static inline bool
list_empty(const struct link *head)
{
	return head->next == head;
}

static inline bool
link_used(const struct link *link)
{
	return link->next != NULL;
}

static inline void
list_append(struct link *head, struct link *link)
{
	link->prev = head->prev;
	link->next = head;
	head->prev->next = link;
	head->prev = link;
}

static inline void
link_remove(struct link *link)
{
	if (!link_used(link))
		return;
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link->next = link->prev = NULL;
}

#endif
