/* SPDX-License-Identifier: PostgreSQL */
/*
 * What --check writes: one line a fact, with its mark, its value and, where something is wrong,
 * the remedy; or one JSON document of the same facts.
 *
 *	✓ handler             public.apply_payment(key text, payload jsonb)
 *	✗ source              served with another handler … → use another --source, or …
 *	· filter              attributes.kind = "payment": …
 *
 * All texts given are owned by the caller no more. Line breaks and control characters in them
 * become spaces, so that nothing in an error message can forge a line.
 */
#ifndef INBOX_CHECK_REPORT_H
#define INBOX_CHECK_REPORT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

struct check_report
{
	FILE *out;
	struct json_object *facts; /* NULL: lines are written, each at once */
	const char *group;
	int problems;
};

void check_report_begin(struct check_report *report, FILE *out, bool json);

/* The facts that follow are about this. */
void check_report_group(struct check_report *report, const char *group);

/* As it should be. */
void check_report_ok(struct check_report *report, const char *name, char *value);

/* Without a verdict: to be known, or it could not be looked at. */
void check_report_note(struct check_report *report, const char *name, char *value);

/* Counted; the remedy may be NULL. */
void check_report_problem(struct check_report *report, const char *name, char *value, char *remedy);

/* Writes the end. Returns the status to exit with: 0, or 2 when there were problems. */
int check_report_end(struct check_report *report);

#endif
