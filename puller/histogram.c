/* SPDX-License-Identifier: PostgreSQL */
#include "histogram.h"

#include <assert.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const double histogram_durations[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
									  0.5,	 1,		 2.5,	5,	  10,	 30,   60};
const size_t histogram_duration_count = COUNT(histogram_durations);

const double histogram_ages[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,	 1,		2.5,   5,
								 10,	30,	  60,	 300,  900, 3600, 14400, 86400, 604800};
const size_t histogram_age_count = COUNT(histogram_ages);

const double histogram_sizes[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000};
const size_t histogram_size_count = COUNT(histogram_sizes);

void
histogram_init(struct histogram *histogram, const double *bounds, size_t bound_count)
{
	assert(bound_count <= HISTOGRAM_BOUNDS_MAX);
	*histogram = (struct histogram){.bounds = bounds, .bound_count = bound_count};
}

/* The first bucket whose bound is not below the value. */
static size_t
find_bucket(const struct histogram *histogram, double value)
{
	size_t low = 0;
	size_t high = histogram->bound_count;

	while (low < high)
	{
		size_t middle = (low + high) / 2;

		if (histogram->bounds[middle] < value)
		{
			low = middle + 1;
		}
		else
		{
			high = middle;
		}
	}
	return low;
}

void
histogram_add(struct histogram *histogram, double value, uint64_t times)
{
	/* The clocks of the service and of this machine differ by a little. */
	double floored = value > 0 ? value : 0;

	histogram->bucket[find_bucket(histogram, floored)] += times;
	histogram->count += times;
	histogram->sum += floored * (double) times;
}
