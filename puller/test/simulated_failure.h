/* SPDX-License-Identifier: PostgreSQL */
/* How a simulated database counts the failures of a message, and what may be held against one. */
#ifndef INBOX_TEST_SIMULATED_FAILURE_H
#define INBOX_TEST_SIMULATED_FAILURE_H

#include "simulated_service.h"

/* As --halt-after. A source where nothing can be applied any more is resumed by a person. */
#define HALT_AFTER 7
#define PERSON_MS 600000

/* So many messages failed and none was applied between. */
static bool
is_halted(const struct row *row)
{
	int others = 0;

	for (int i = 0; i < item_count; i++)
	{
		others += database->rows[i].failed_ms > database->applied_ms && &database->rows[i] != row;
	}
	if (others + 1 < HALT_AFTER)
	{
		return false;
	}
	if (database->halted_ms <= database->applied_ms)
	{
		database->halted_ms = world_ms;
	}
	if (world_ms >= database->halted_ms + PERSON_MS)
	{
		database->applied_ms = world_ms;
	}
	return true;
}

/*
 * What may be held against a message: what its handler raised, a timeout of a transaction it was
 * in, and the loss of a connection it was on. What is nobody's fault is not recorded.
 */
static void
check_blame(const struct item *item, const char *sqlstate)
{
	assert_non_null(sqlstate);
	if (strcmp(sqlstate, "IX006") == 0)
	{
		assert_true(item->losses > 0);
	}
	else if (strcmp(sqlstate, "57014") == 0)
	{
		assert_true(item->timeouts > 0);
	}
	else
	{
		assert_string_equal(sqlstate, item->kind == KIND_DEFERRED ? "23503" : "P0001");
		assert_true(item->tries > 0);
	}
}

static int64_t
pause_ms(const struct row *row)
{
	return INT64_C(1000) << (row->attempts < 9 ? row->attempts : 9);
}

/* Unless the source is halted, when nothing is counted anyway. */
static bool
rests(const struct row *row)
{
	return !row->noted && world_ms < row->retry_ms && database->halted_ms <= database->applied_ms;
}

/*
 * As inbox_fail() counts: once a pause, and an attempt that was noted before it was made is not
 * counted again.
 */
static const char *
count_failure(const struct item *item, const char *sqlstate)
{
	struct row *row = &database->rows[item - items];
	bool note = strcmp(sqlstate, "IX006") == 0;
	bool patient = strcmp(sqlstate, "57014") == 0;

	if (rests(row))
	{
		row->noted = note;
		return "retrying";
	}
	if (is_halted(row))
	{
		return "halted";
	}
	row->failed_ms = world_ms;
	row->attempts += !note && !row->noted;
	row->dead = row->attempts >= 5 && !patient;
	row->claimed = row->dead;
	row->attempts += note && !row->dead;
	row->noted = note;
	row->retry_ms = world_ms + pause_ms(row);
	/* Of each attempt there must have been one. */
	assert_true(row->attempts <= item->tries + item->timeouts + item->losses);
	return row->dead ? "dead" : "retrying";
}

#endif
