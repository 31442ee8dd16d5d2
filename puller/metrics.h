/* SPDX-License-Identifier: PostgreSQL */
/*
 * What a puller counts while it works. Counting is an addition in memory; names, units and texts
 * are for whoever reads it (scrape.c, status.c).
 */
#ifndef INBOX_METRICS_H
#define INBOX_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "histogram.h"
#include "label.h"

/* What becomes of a delivered message. */
enum metrics_verdict
{
	METRICS_APPLIED,
	METRICS_DUPLICATE,
	METRICS_CONFLICT,
	METRICS_PARKED,
	METRICS_EXPIRED,
	METRICS_DEAD,
	METRICS_LATER,
	METRICS_RETRYING,
	METRICS_HALTED, /* failed while the source was halted: not counted against it */
	METRICS_VERDICTS
};

enum metrics_pull
{
	METRICS_PULL_FULL,	/* brought messages */
	METRICS_PULL_EMPTY, /* brought none */
	METRICS_PULL_FAILED,
	METRICS_PULLS
};

#define METRICS_CLASS_SIZE 8   /* bytes of the name of a class of failures */
#define METRICS_CLASSES_MAX 48 /* the standard has about 40; the last is for the rest */
#define METRICS_DEAD_MAX 1024  /* dead letters whose copies are recognised */

struct metrics
{
	struct label label;
	uint64_t messages[METRICS_VERDICTS][LABELS];
	uint64_t pulled;
	uint64_t pulls[METRICS_PULLS];
	uint64_t unknown;	/* transactions whose outcome is not known */
	uint64_t failed;	/* transactions that were rolled back, for whatever reason */
	uint64_t committed; /* transactions */
	uint64_t connected; /* connections made to the database */
	uint64_t failures[METRICS_CLASSES_MAX];
	char failure_class[METRICS_CLASSES_MAX][METRICS_CLASS_SIZE];
	size_t failure_classes;
	uint64_t dead_duplicates;
	uint64_t dead_key[METRICS_DEAD_MAX]; /* hashes; 0: none. The oldest gives way */
	uint64_t dead_keys;					 /* so far */
	struct histogram batch_size;		 /* messages */
	struct histogram handler;			 /* seconds a message took of its call */
	struct histogram transaction;		 /* seconds from BEGIN to the answer to COMMIT */
	struct histogram age;				 /* seconds from publishing to the commit */
	double age_max;						 /* since history.c took it last */
};

/* "label" is the value of --label, or NULL. */
void metrics_init(struct metrics *metrics, const char *label);
void metrics_free(struct metrics *metrics);

/* All messages of a verdict, whatever their label. */
uint64_t metrics_total(const struct metrics *metrics, enum metrics_verdict verdict);

/* 'applied', 'duplicate', … as the metric and the page name it. */
const char *metrics_verdict_name(enum metrics_verdict verdict);

/* A committed batch: its size, the microseconds its call took, and those of all of it. */
void metrics_batch(struct metrics *metrics, size_t messages, int64_t call_us, int64_t took_us);

/* Microseconds of CLOCK_REALTIME from publishing (INT64_MIN: not known) to the commit. */
void metrics_age(struct metrics *metrics, int64_t published_us, int64_t now_us);

/* A failure with this SQLSTATE; NULL for one that has none, such as a message without a key. */
void metrics_failure(struct metrics *metrics, const char *sqlstate);

/* A message with this key (NULL: it has none) became a dead letter. */
void metrics_dead(struct metrics *metrics, const char *key);

/* A message with this key is a duplicate: perhaps of a dead letter. */
void metrics_duplicate(struct metrics *metrics, const char *key);

#endif
