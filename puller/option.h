/* SPDX-License-Identifier: PostgreSQL */
/*
 * The table of options: one row gives the flag --name, the variable INBOX_NAME, the key in the
 * ini file, its line in --help, the manual page and the sample file, and how its text is read.
 */
#ifndef INBOX_OPTION_H
#define INBOX_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "fault.h"

#define OPTION_MAX 64		/* rows */
#define OPTION_NAME_SIZE 64 /* bytes of a derived name with its NUL */

enum option_kind
{
	/* Settings: they have a member of struct config. */
	OPTION_TEXT,	 /* char * */
	OPTION_BOOL,	 /* bool */
	OPTION_INT,		 /* int */
	OPTION_DURATION, /* int64_t of milliseconds */
	OPTION_BYTES,	 /* int64_t */
	OPTION_ENUM,	 /* an enum that counts from 0 */
	OPTION_KEYS,	 /* struct key_rules */
	/* Not settings. */
	OPTION_CONFIG,
	OPTION_CHECK,
	OPTION_JSON,
	OPTION_SEEK,
	OPTION_YES,
	OPTION_HELP,
	OPTION_VERSION
};

enum option_group
{
	OPTION_CONSUMED,
	OPTION_PUBSUB,
	OPTION_DATABASE,
	OPTION_BATCHES,
	OPTION_RUNNING,
	OPTION_GROUPS
};

struct option_row
{
	const char *name;
	enum option_kind kind;
	enum option_group group;
	const char *metavar;		/* NULL for a bool */
	const char *initial;		/* the default as text, or NULL */
	const char *sample;			/* without a default: what stands in the sample file */
	bool computed;				/* "sample" is the default, worked out from elsewhere */
	size_t offset;				/* into struct config */
	int64_t min, max;			/* of numbers */
	const char *limits;			/* why min and max are what they are, where that is not plain */
	const char *const *choices; /* of an enum and of --help, ended by NULL */
	bool reloadable;
	bool secret; /* its value is never shown */
	const char *help;
};

extern const struct option_row option_table[];
extern const size_t option_count;
extern const char *const option_group_title[OPTION_GROUPS];

/* True for rows that have a member of struct config. */
bool option_is_setting(const struct option_row *row);

/* The row of that name, or NULL. */
const struct option_row *option_find(const char *name);

/* The setting whose name is nearest, or NULL when none is near enough to have been meant. */
const struct option_row *option_nearest(const char *name);

/* INBOX_NAME. */
void option_environment_name(const struct option_row *row, char out[OPTION_NAME_SIZE]);

/* The name in lower_snake_case, for logs. */
void option_log_name(const struct option_row *row, char out[OPTION_NAME_SIZE]);

#endif
