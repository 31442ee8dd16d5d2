/* SPDX-License-Identifier: PostgreSQL */
/*
 * --seek: takes the subscription back to where the database was restored to, so that what was
 * acknowledged since comes again. Shows the time and why it is that one, and seeks only if that was
 * confirmed.
 *
 * A seek acknowledges what was published before its time, applied or not, so it is refused where
 * that is known to lose a message.
 */
#ifndef INBOX_SEEK_H
#define INBOX_SEEK_H

#include <stdint.h>
#include <stdio.h>

#include "check.h"

/* Exit status: everything was shown, nothing stands against it, and it was not confirmed. */
#define SEEK_SHOWN 3

/* Times in microseconds since 1970; INT64_MIN: there is none. */
struct seek_point
{
	bool known;		 /* the source is there */
	char *served_as; /* the source that is served from the subscription in its place, or NULL */
	bool moved;		 /* the database was restored, or another server took its place */
	int64_t served_since; /* by pullers, since it was moved; none: they have not come yet */
	int64_t moved_before;
	int64_t newest_claim;
	int64_t longest_way; /* microseconds */
	int64_t oldest_waiting;
	int64_t purged_before;
	int64_t seek_to; /* the time worked out */
};

/* Writes the report. Returns the status to exit with. */
int seek_run(const struct config *config, FILE *out);

/* Frees what it holds. */
void seek_point_free(struct seek_point *point);

/* Reads what the database knows; false where it cannot be asked, which is reported. */
bool seek_point_read(struct check *check, struct seek_point *point);

/* Reports it, and what stands against a seek to "to" (none: the time could not be worked out). */
void seek_point_report(struct check *check, const struct seek_point *point, int64_t to);

#endif
