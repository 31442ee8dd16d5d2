/* SPDX-License-Identifier: PostgreSQL */
/*
 * The values of options: from text into struct config and back, by the kind of the option.
 */
#ifndef INBOX_VALUE_H
#define INBOX_VALUE_H

#include "option.h"

/*
 * Reads a value and stores it; a rule of OPTION_KEYS is added to those there are. False, with
 * nothing stored, when it cannot be read.
 */
bool value_set(const struct option_row *row, struct config *config, const char *text,
			   struct fault *fault) __attribute__((warn_unused_result));

/* Frees what a value holds, and zeroes it. */
void value_clear(const struct option_row *row, struct config *config);

/* The value as value_set() would read it, to be freed; NULL for a text that is not set. */
char *value_text(const struct option_row *row, const struct config *config);

void value_swap(const struct option_row *row, struct config *one, struct config *other);

#endif
