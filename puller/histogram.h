/* SPDX-License-Identifier: PostgreSQL */
/*
 * Counts of values in buckets, as Prometheus has them: how many were at most each bound. Adding is
 * a search of a few comparisons and two additions.
 */
#ifndef INBOX_HISTOGRAM_H
#define INBOX_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BOUNDS_MAX 24

struct histogram
{
	const double *bounds; /* rising; static storage */
	size_t bound_count;
	uint64_t bucket[HISTOGRAM_BOUNDS_MAX + 1]; /* each alone; the last is above all bounds */
	uint64_t count;
	double sum;
};

/* For durations in seconds, 1 ms to 60 s; for ages in seconds, 5 ms to a week; for counts. */
extern const double histogram_durations[];
extern const size_t histogram_duration_count;
extern const double histogram_ages[];
extern const size_t histogram_age_count;
extern const double histogram_sizes[];
extern const size_t histogram_size_count;

void histogram_init(struct histogram *histogram, const double *bounds, size_t bound_count);

/* Adds "value", "times" times; what is below zero counts as zero. */
void histogram_add(struct histogram *histogram, double value, uint64_t times);

#endif
