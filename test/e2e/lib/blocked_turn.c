/* SPDX-License-Identifier: PostgreSQL */
/*
 * Watches the loop, preloaded: what it does between two waits (curl_multi_poll) must not block. The
 * file named by BLOCKED_TURNS gets a line with the milliseconds of each turn that slept for more
 * than 100 of them, and one that says "watched" when the first turn
 * ends. The way out, after the last wait, is a turn as well. Time in which the thread
 * ran, or was runnable and the machine had no processor for it, is not the loop's doing and does not
 * count.
 */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_NS INT64_C(100000000)

typedef CURLMcode (*poll_function)(CURLM *, struct curl_waitfd *, unsigned int, int, int *);

static int64_t
wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Nanoseconds for which this thread has run or waited for a processor. */
static int64_t
runnable_ns(void)
{
	static int file = -1;
	char line[128] = "";
	long long ran = 0;
	long long waited = 0;

	if (file < 0)
	{
		file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	}
	if (pread(file, line, sizeof(line) - 1, 0) < 0 || sscanf(line, "%lld %lld", &ran, &waited) != 2)
	{
		perror("blocked_turn: could not read /proc/thread-self/schedstat");
		abort();
	}
	return ran + waited;
}

static void
report(const char *line)
{
	FILE *file = fopen(getenv("BLOCKED_TURNS"), "a");

	if (file == NULL || fprintf(file, "%s\n", line) < 0 || fclose(file) != 0)
	{
		perror("blocked_turn: could not report");
		abort();
	}
}

static struct
{
	bool begun;
	int64_t wall;
	int64_t runnable;
} turn;

static void
begin_turn(void)
{
	turn.begun = true;
	turn.wall = wall_ns();
	turn.runnable = runnable_ns();
}

__attribute__((destructor)) static void
end_turn(void)
{
	static bool watched = false;
	int64_t blocked;

	if (!turn.begun)
	{
		return;
	}
	blocked = wall_ns() - turn.wall - (runnable_ns() - turn.runnable);
	if (!watched)
	{
		report("watched");
		watched = true;
	}
	if (blocked > LIMIT_NS)
	{
		char line[32];

		snprintf(line, sizeof(line), "%lld", (long long) (blocked / 1000000));
		report(line);
	}
	turn.begun = false;
}

CURLMcode
curl_multi_poll(CURLM *multi, struct curl_waitfd extra[], unsigned int extras, int timeout_ms,
				int *events)
{
	poll_function real = (poll_function) dlsym(RTLD_NEXT, "curl_multi_poll");
	CURLMcode result;

	end_turn();
	result = real(multi, extra, extras, timeout_ms, events);
	begin_turn();
	return result;
}
