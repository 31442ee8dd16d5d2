/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memory.h"
#include "seek.h"
#include "timestamp.h"

#define NONE INT64_MIN
/* Every claim of the source is read, and nothing else is going on. */
#define STATEMENT_MS 600000

enum
{
	POINT_MOVED,
	POINT_SERVED_SINCE,
	POINT_MOVED_BEFORE,
	POINT_NEWEST_CLAIM,
	POINT_LONGEST_WAY,
	POINT_OLDEST_WAITING,
	POINT_PURGED_BEFORE,
	POINT_SEEK_TO
};

#define UTC(column) \
	" pg_catalog.to_char(" column " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'),"

/* ---- reading -------------------------------------------------------------------------------- */

static int64_t
time_of(const PGresult *row, int field)
{
	int64_t time;

	return !PQgetisnull(row, 0, field) && timestamp_parse(PQgetvalue(row, 0, field), &time) ? time
																							: NONE;
}

static void
read_row(struct seek_point *point, const PGresult *row)
{
	point->known = true;
	point->moved = PQgetvalue(row, 0, POINT_MOVED)[0] == 't';
	point->served_since = time_of(row, POINT_SERVED_SINCE);
	point->moved_before = time_of(row, POINT_MOVED_BEFORE);
	point->newest_claim = time_of(row, POINT_NEWEST_CLAIM);
	point->longest_way = strtoll(PQgetvalue(row, 0, POINT_LONGEST_WAY), NULL, 10);
	point->oldest_waiting = time_of(row, POINT_OLDEST_WAITING);
	point->purged_before = time_of(row, POINT_PURGED_BEFORE);
	point->seek_to = time_of(row, POINT_SEEK_TO);
}

/* Messages that are tried again are known by their source: with a wrong one they would be overlooked. */
static bool
read_served_as(struct check *check, struct seek_point *point)
{
	const char *values[] = {check->config->source, check->config->subscription};
	char *sql = memory_format("SELECT CASE WHEN NOT bool_or(s.source = $1) THEN min(s.source) END"
							  " FROM %s.inbox_status() s WHERE s.subscription = $2",
							  check->facts.schema);
	PGresult *row = check_ask(check, false, sql, 2, values);

	free(sql);
	if (row == NULL)
	{
		check_complain(check, "source");
		return false;
	}
	if (!PQgetisnull(row, 0, 0))
	{
		point->served_as = memory_copy_text(PQgetvalue(row, 0, 0));
	}
	PQclear(row);
	return true;
}

void
seek_point_free(struct seek_point *point)
{
	free(point->served_as);
}

bool
seek_point_read(struct check *check, struct seek_point *point)
{
	const char *values[] = {check->config->source};
	char *sql = memory_format(
		"SELECT moved," UTC("served_since") UTC("moved_before")
			UTC("newest_claim") " coalesce((extract(epoch FROM longest_way) * 1000000)::bigint, "
								"0)," UTC("oldest_waiting") UTC("purged_before")
									UTC("seek_to") " waiting FROM %s.inbox_restore_point($1)",
		check->facts.schema);
	PGresult *row;

	*point = (struct seek_point){.served_since = NONE,
								 .moved_before = NONE,
								 .newest_claim = NONE,
								 .oldest_waiting = NONE,
								 .purged_before = NONE,
								 .seek_to = NONE};
	check->statement_ms = STATEMENT_MS;
	row = check_ask(check, false, sql, 1, values);
	free(sql);
	if (row == NULL)
	{
		check_complain(check, "source");
		return false;
	}
	if (PQntuples(row) == 1)
	{
		read_row(point, row);
	}
	PQclear(row);
	return read_served_as(check, point);
}

/* ---- what it says --------------------------------------------------------------------------- */

static char *
ago(int64_t time)
{
	char text[TIMESTAMP_SIZE];
	int64_t seconds = (clock_real_us() - time) / 1000000;
	char *since = check_time((seconds >= 120 ? seconds / 60 * 60 : seconds) * 1000);
	char *line = memory_format("%s, %s ago", timestamp_format(time, text), since);

	free(since);
	return line;
}

static void
report_moved(struct check *check, const struct seek_point *point)
{
	char text[TIMESTAMP_SIZE];

	if (!point->moved)
	{
		check_report_problem(
			&check->report, "restored",
			memory_format("not as far as can be seen: %s is served on the cluster and the "
						  "timeline that it always was",
						  check->config->source),
			memory_copy_text("give a time before the backup, the copy of the disk or the switch: "
							 "--seek 2026-01-31T12:00:00Z"));
	}
	else if (point->served_since == NONE)
	{
		check_report_ok(&check->report, "restored",
						memory_copy_text("another cluster or timeline than the last puller saw; "
										 "none has come here yet"));
	}
	else
	{
		check_report_ok(&check->report, "restored",
						memory_format("another cluster or timeline; pullers are here since %s, "
									  "and what they claimed is left out",
									  timestamp_format(point->served_since, text)));
	}
}

static void
report_newest(struct check *check, const struct seek_point *point)
{
	char *way = check_time(point->longest_way / 1000000 * 1000);

	if (point->newest_claim == NONE)
	{
		check_report_problem(&check->report, "newest claim",
							 memory_copy_text("there is none: no time can be worked out"),
							 memory_copy_text("give a time before the first message that is "
											  "missing: --seek 2026-01-31T12:00:00Z"));
	}
	else
	{
		check_report_ok(&check->report, "newest claim", ago(point->newest_claim));
		check_report_ok(&check->report, "longest way",
						memory_format("%s from publication to claim, in the day before", way));
	}
	free(way);
}

static void
report_worked_out(struct check *check, const struct seek_point *point)
{
	char text[TIMESTAMP_SIZE];

	if (!point->known)
	{
		check_report_problem(&check->report, "source",
							 memory_format("%s is not known to this database: it has no keys",
										   check->config->source),
							 memory_copy_text("give --source as the puller has it, or a time: "
											  "--seek 2026-01-31T12:00:00Z"));
		return;
	}
	report_moved(check, point);
	report_newest(check, point);
	if (point->moved && point->moved_before != NONE)
	{
		check_report_note(
			&check->report, "restored before",
			memory_format("at %s, too: if what was lost then was not sought back, give a time "
						  "before that",
						  timestamp_format(point->moved_before, text)));
	}
}

/* ---- what stands against it ----------------------------------------------------------------- */

static void
refuse_future(struct check *check, int64_t to)
{
	if (to > clock_real_us())
	{
		check_report_problem(&check->report, "time",
							 memory_copy_text("it is ahead: all that is published until then "
											  "would be acknowledged, and not applied"),
							 memory_copy_text("give a time in the past"));
	}
}

static void
refuse_other_source(struct check *check, const struct seek_point *point)
{
	if (point->served_as != NULL)
	{
		check_report_problem(
			&check->report, "source",
			memory_format("%s is served as the source %s and not as %s: what is tried again there "
						  "was not looked at",
						  check->config->subscription, point->served_as, check->config->source),
			memory_format("--source %s", point->served_as));
	}
}

static void
refuse_waiting(struct check *check, const struct seek_point *point, int64_t to)
{
	char text[TIMESTAMP_SIZE];

	if (point->oldest_waiting != NONE && point->oldest_waiting < to)
	{
		check_report_problem(
			&check->report, "tried again",
			memory_format("a message published at %s failed and is to be tried again: a seek "
						  "behind it would acknowledge it",
						  timestamp_format(point->oldest_waiting, text)),
			memory_copy_text("give a time before that, or wait until it is applied or dead"));
	}
}

static void
refuse_purged(struct check *check, const struct seek_point *point, int64_t to)
{
	char text[TIMESTAMP_SIZE];

	if (point->purged_before != NONE && to < point->purged_before)
	{
		(void) timestamp_format(point->purged_before, text);
		check_report_problem(
			&check->report, "keys",
			memory_format("those of messages published before %s are forgotten: what comes again "
						  "from before that cannot be told from new, and would be kept as expired",
						  text),
			memory_format("--seek %s, and see to what is older by hand", text));
	}
}

void
seek_point_report(struct check *check, const struct seek_point *point, int64_t to)
{
	if (strcmp(check->config->seek, SEEK_RESTORE_POINT) == 0)
	{
		report_worked_out(check, point);
	}
	if (to == NONE)
	{
		return;
	}
	check_report_ok(&check->report, "seek to", ago(to));
	refuse_future(check, to);
	refuse_other_source(check, point);
	refuse_waiting(check, point, to);
	refuse_purged(check, point, to);
}
