/* SPDX-License-Identifier: PostgreSQL */
/* The text format of Prometheus, version 0.0.4. */
#ifndef INBOX_EXPOSITION_H
#define INBOX_EXPOSITION_H

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "histogram.h"

#define EXPOSITION_LABELS_MAX 6

struct exposition_label
{
	const char *name; /* ended by one without a name */
	const char *value;
};

/* Begins a metric: "type" is counter, gauge or histogram. */
void exposition_begin(struct buffer *out, const char *name, const char *type, const char *help);

/* A sample of it; labels may be NULL. A label without a value is left out, as Prometheus sees it. */
void exposition_count(struct buffer *out, const char *name, const struct exposition_label *labels,
					  uint64_t value);
void exposition_value(struct buffer *out, const char *name, const struct exposition_label *labels,
					  double value);

/* A histogram as a whole, with its beginning. */
void exposition_histogram(struct buffer *out, const char *name, const char *help,
						  const struct histogram *histogram);

#endif
