/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_FILTER_H
#define PUBSUB_FILTER_H

#include <stdbool.h>

struct json_object;
struct problem;

/*
 * The filter language of subscriptions:
 *
 *   attributes:NAME              the message has the attribute
 *   attributes.NAME = "value"    it has it with this value
 *   attributes.NAME != "value"   it does not have it with this value
 *   hasPrefix(attributes.NAME, "value")
 *   NOT x, -x, x AND y, x OR y, ( x )
 *
 * A NAME with other characters than letters, digits, _ and - is written as a string. AND and OR
 * side by side need parentheses. At most 256 bytes.
 */
struct filter;

struct filter *filter_parse(const char *text, struct problem *problem);

/* Whether a message with these attributes (NULL: none) passes. */
bool filter_match(const struct filter *filter, struct json_object *attributes);
void filter_free(struct filter *filter);

#endif
