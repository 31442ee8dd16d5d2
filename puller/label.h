/* SPDX-License-Identifier: PostgreSQL */
/*
 * The values of the attribute that --label names, such as a message's event type. Publishers
 * choose them, and each is a time series for whoever collects the metrics: after the first 50
 * different ones all others are one.
 */
#ifndef INBOX_LABEL_H
#define INBOX_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#define LABEL_VALUES_MAX 50
#define LABEL_VALUE_BYTES 128 /* a longer value counts as "other" */

/* What a message is counted under: LABEL_NONE, LABEL_OTHER, or a value from 2. */
#define LABEL_NONE 0
#define LABEL_OTHER 1
#define LABELS (LABEL_VALUES_MAX + 2)

struct label
{
	const char *attribute; /* NULL: messages are not told apart */
	char *name;			   /* of the label: the attribute's, with _ for what a label cannot have */
	char *value[LABELS];   /* from 2 */
	size_t count;		   /* of places in use, LABEL_NONE and LABEL_OTHER among them */
};

/* "option" is the value of --label or NULL; it must live as long as the label. */
void label_init(struct label *label, const char *option);
void label_free(struct label *label);

/* The place of a message with these attributes, a JSON object as text, or NULL. */
unsigned char label_of(struct label *label, const char *attributes);

/* The value at a place as a metric shows it: "" for LABEL_NONE, "other" for LABEL_OTHER. */
const char *label_value(const struct label *label, size_t place);

/* NULL, or what is wrong with the value of --label (static storage). */
const char *label_check(const char *option);

#endif
