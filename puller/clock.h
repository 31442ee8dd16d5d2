/* SPDX-License-Identifier: PostgreSQL */
/*
 * The clock of leases and deadlines: CLOCK_BOOTTIME, which goes on while the machine sleeps, as
 * the service's clock does. CLOCK_MONOTONIC stops, and a lease would look alive after a resume.
 */
#ifndef INBOX_CLOCK_H
#define INBOX_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NEVER INT64_MAX

/* Milliseconds since the machine started. */
static inline int64_t
clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Microseconds of the same clock. */
static inline int64_t
clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Microseconds since 1970, as messages are published; it may be set back. */
static inline int64_t
clock_real_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif
