/* SPDX-License-Identifier: PostgreSQL */
/*
 * What is wrong with the configuration, for people: the fact with its cause, and the remedy.
 */
#ifndef INBOX_FAULT_H
#define INBOX_FAULT_H

#include <stdbool.h>
#include <stdlib.h>

struct fault
{
	char *fact;	  /* NULL while nothing is wrong */
	char *remedy; /* or NULL */
};

/* Takes both texts over. Returns false, so that a check can end in "return fault_set(…)". */
static inline bool
fault_set(struct fault *fault, char *fact, char *remedy)
{
	free(fault->fact);
	free(fault->remedy);
	fault->fact = fact;
	fault->remedy = remedy;
	return false;
}

static inline void
fault_free(struct fault *fault)
{
	(void) fault_set(fault, NULL, NULL);
}

#endif
