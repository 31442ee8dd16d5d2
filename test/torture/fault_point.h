/* SPDX-License-Identifier: PostgreSQL */
/*
 * Named points at which a torture run kills, stops or fails a process; only in builds for tests.
 *
 * INBOX_FAULT_FILE names a file that all processes map: an array of slots, one a point, with the
 * names of all points there are (points.py makes it). A point that is armed with a countdown of N
 * is hit at its N-th passage from then on, in whichever process that is. A hit is a line of
 * INBOX_FAULT_FILE.hits: microseconds since 1970, process id, point, action, passage.
 */
#ifndef INBOX_TORTURE_FAULT_POINT_H
#define INBOX_TORTURE_FAULT_POINT_H

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FAULT_POINT_KILL 1
#define FAULT_POINT_STOP 2
#define FAULT_POINT_ERROR 3

struct fault_point_slot
{
	char name[32];
	uint64_t passages;
	uint64_t hits;
	int64_t countdown; /* armed while positive */
	uint32_t action;
	uint32_t stopped; /* the process that stopped last */
};

struct fault_point_file
{
	struct fault_point_slot *slots; /* NULL: nothing is to go wrong */
	size_t count;
	int hits;
};

static inline void
fault_point_open(struct fault_point_file *file)
{
	const char *path = getenv("INBOX_FAULT_FILE");
	int slots = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	char hits[4096];
	struct stat about;
	void *map;

	if (slots < 0 || fstat(slots, &about) != 0)
	{
		return;
	}
	map = mmap(NULL, (size_t) about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, slots, 0);
	close(slots);
	snprintf(hits, sizeof(hits), "%s.hits", path);
	file->hits = open(hits, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (map == MAP_FAILED || file->hits < 0)
	{
		abort();
	}
	file->slots = map;
	file->count = (size_t) about.st_size / sizeof(struct fault_point_slot);
}

/* A point that the file does not know would never be hit, and nobody would see that. */
static inline struct fault_point_slot *
fault_point_find(const struct fault_point_file *file, const char *name)
{
	for (size_t i = 0; i < file->count; i++)
	{
		if (strcmp(file->slots[i].name, name) == 0)
		{
			return &file->slots[i];
		}
	}
	fprintf(stderr, "fault point \"%s\" is not in INBOX_FAULT_FILE\n", name);
	abort();
}

static inline void
fault_point_report(const struct fault_point_file *file, const struct fault_point_slot *slot,
				   uint32_t action, uint64_t passage)
{
	static const char *const actions[] = {"?", "kill", "stop", "error"};
	struct timespec now;
	char line[128];
	int size;

	clock_gettime(CLOCK_REALTIME, &now);
	size = snprintf(line, sizeof(line), "%lld%06ld %d %s %s %" PRIu64 "\n", (long long) now.tv_sec,
					now.tv_nsec / 1000, (int) getpid(), slot->name, actions[action], passage);
	if (write(file->hits, line, (size_t) size) != size)
	{
		abort();
	}
}

/*
 * True: the caller fails as if what stands at this point had, and not before what was sent until
 * then is likely to be answered.
 */
static inline bool
fault_point_pass(const char *name)
{
	static struct fault_point_file file;
	static bool opened;
	struct fault_point_slot *slot;
	uint64_t passage;
	uint32_t action;

	if (!opened)
	{
		opened = true;
		fault_point_open(&file);
	}
	if (file.slots == NULL)
	{
		return false;
	}
	slot = fault_point_find(&file, name);
	passage = __atomic_add_fetch(&slot->passages, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&slot->countdown, __ATOMIC_SEQ_CST) <= 0 ||
		__atomic_sub_fetch(&slot->countdown, 1, __ATOMIC_SEQ_CST) != 0)
	{
		return false;
	}
	/* While this process is stopped the point may be armed again. */
	action = slot->action;
	fault_point_report(&file, slot, action, passage);
	if (action == FAULT_POINT_STOP)
	{
		__atomic_store_n(&slot->stopped, (uint32_t) getpid(), __ATOMIC_SEQ_CST);
	}
	__atomic_add_fetch(&slot->hits, 1, __ATOMIC_SEQ_CST);
	if (action == FAULT_POINT_KILL)
	{
		kill(getpid(), SIGKILL);
	}
	else if (action == FAULT_POINT_STOP)
	{
		kill(getpid(), SIGSTOP);
	}
	else
	{
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	return action == FAULT_POINT_ERROR;
}

#endif
