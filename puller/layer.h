/* SPDX-License-Identifier: PostgreSQL */
/*
 * One of the places values come from: the defaults, the file, the environment, the flags. Layers
 * are laid over each other from the lowest up; a list replaces the list below it.
 */
#ifndef INBOX_LAYER_H
#define INBOX_LAYER_H

#include "option.h"

struct layer
{
	struct config *config;
	bool splits_lists;	   /* at commas and line breaks */
	bool seen[OPTION_MAX]; /* by row: this layer has given it */
};

/*
 * Sets one value of this layer. "place" says where it comes from and begins the fact when the
 * value is wrong.
 */
bool layer_set(struct layer *layer, const struct option_row *row, const char *text,
			   const char *place, struct fault *fault) __attribute__((warn_unused_result));

/* The two layers that need nothing else. */
bool layer_defaults(struct config *config, struct fault *fault) __attribute__((warn_unused_result));
bool layer_environment(struct config *config, struct fault *fault)
	__attribute__((warn_unused_result));

#endif
