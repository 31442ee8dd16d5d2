/* SPDX-License-Identifier: PostgreSQL */
/*
 * The command line: --name VALUE, --name=VALUE, --name and --no-name, and nothing else.
 */
#ifndef INBOX_FLAGS_H
#define INBOX_FLAGS_H

#include "layer.h"

struct flag
{
	const struct option_row *row;
	const char *value; /* of argv, or "on" or "off"; NULL for --help and --version without one */
};

struct flags
{
	struct flag *flag; /* in the order given; free() it */
	size_t count;
};

bool flags_read(struct flags *flags, int argc, char **argv, struct fault *fault)
	__attribute__((warn_unused_result));

/* The last flag of that kind, or NULL. */
const struct flag *flags_find(const struct flags *flags, enum option_kind kind);

/* Lays the settings among the flags over the configuration. */
bool flags_apply(const struct flags *flags, struct config *config, struct fault *fault)
	__attribute__((warn_unused_result));

#endif
