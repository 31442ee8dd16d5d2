/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_SETTINGS_H
#define PUBSUB_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct json_object;
struct problem;

/* What a user sets on a subscription. Durations in nanoseconds. */
struct settings
{
	char *topic;
	int64_t ack_deadline; /* seconds */
	bool retain_acked;
	int64_t retention;
	struct json_object *labels; /* NULL: none */
	bool ordering;
	int64_t expires_after;	 /* 0: never */
	char *filter;			 /* NULL: none */
	char *dead_letter_topic; /* NULL: no policy */
	int64_t max_attempts;
	bool retries;
	int64_t min_backoff;
	int64_t max_backoff;
	bool exactly_once;
};

/* Reads a Subscription of a create request, with the defaults for what it leaves out. */
bool settings_create(struct settings *settings, struct json_object *object,
					 struct problem *problem);

/* Sets the fields that the mask names to what the object has, or to their defaults. */
bool settings_patch(struct settings *settings, struct json_object *object, const char *mask,
					struct problem *problem);

/* Adds the settings to the JSON form of the subscription. */
void settings_render(const struct settings *settings, struct json_object *object);
void settings_copy(struct settings *settings, const struct settings *from);
void settings_free(struct settings *settings);

/* Whether the labels are an object of strings. A copy goes to *labels, whose old value is freed. */
bool settings_take_labels(struct json_object *object, struct json_object **labels,
						  struct problem *problem);

#endif
