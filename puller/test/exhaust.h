/* SPDX-License-Identifier: PostgreSQL */
/*
 * Makes the N-th allocation fail, for all N until there are not so many: in a process of its own
 * each time, which must go on or exit with a message, without a leak. These are the allocations of
 * the whole process, those of the libraries included, made while "armed" says so.
 */
#ifndef INBOX_TEST_EXHAUST_H
#define INBOX_TEST_EXHAUST_H

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What memory.c exits with, and what tells that there are fewer allocations. */
#define OUT_OF_MEMORY 3
#define ALL_DONE 42

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *memory);

static volatile bool *armed; /* by whoever knows when */
static long allocations;	 /* while armed */
static long fail_at;
static long live; /* blocks that are not freed */

#define IN_JSON_C "json-c had no memory"

/*
 * json-c looks into the name of a member that it could not copy, and loses a block in other places.
 * The one ends the process as any kill does, and both are no fault of the puller: told apart.
 */
static void
note_json_c(void)
{
	void *frames[16];
	int count = backtrace(frames, 16);
	Dl_info where;

	*armed = false;
	for (int i = 0; i < count; i++)
	{
		if (dladdr(frames[i], &where) != 0 && strstr(where.dli_fname, "libjson-c") != NULL)
		{
			dprintf(STDERR_FILENO, IN_JSON_C "\n");
			return;
		}
	}
}

static bool
fails_now(void)
{
	if (armed == NULL || !*armed || ++allocations != fail_at)
	{
		return false;
	}
	note_json_c();
	errno = ENOMEM;
	return true;
}

void *
malloc(size_t size)
{
	void *memory = fails_now() ? NULL : __libc_malloc(size);

	live += memory != NULL;
	return memory;
}

void *
calloc(size_t count, size_t size)
{
	void *memory = fails_now() ? NULL : __libc_calloc(count, size);

	live += memory != NULL;
	return memory;
}

void *
realloc(void *old, size_t size)
{
	void *memory = fails_now() ? NULL : __libc_realloc(old, size);

	live += memory != NULL && old == NULL;
	return memory;
}

void
free(void *memory)
{
	live -= memory != NULL;
	__libc_free(memory);
}

/* In the process of its own; returns 0, or what is wrong has been said. */
static int
try(int (*scenario)(const void *), const void *argument, long number)
{
	void *frame;
	int status;

	/* The first time, libraries take what they keep; backtrace() does, too. */
	(void) backtrace(&frame, 1);
	(void) scenario(argument);
	fflush(stdout);
	if (ftruncate(STDOUT_FILENO, 0) != 0)
	{
		abort();
	}
	fail_at = number;
	allocations = 0;
	status = scenario(argument);
	return status == 0 && allocations < number ? ALL_DONE : status;
}

/* What the process has written; at most 64 kB of it. */
static const char *
said(int log)
{
	static char bytes[65536];
	ssize_t size = pread(log, bytes, sizeof(bytes) - 1, 0);

	bytes[size > 0 ? size : 0] = '\0';
	return bytes;
}

static int
run_apart(int (*scenario)(const void *), const void *argument, long number, int log)
{
	pid_t child = fork();
	int status;

	if (child == 0)
	{
		dup2(log, STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
		status = try(scenario, argument, number);
		fflush(stdout);
		_exit(status);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
	{
		abort();
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Whoever gives up says so. */
static bool
ended_well(int status, const char *text)
{
	bool excused = status == -SIGSEGV || strstr(text, "Segmentation fault") != NULL ||
				   strstr(text, "not freed") != NULL;

	return status == 0 || status == ALL_DONE ||
		   (status == OUT_OF_MEMORY && strstr(text, "out of memory") != NULL) ||
		   (excused && strstr(text, IN_JSON_C) != NULL);
}

/* Returns whether all have ended well, and prints that. */
static bool
exhaust(const char *name, int (*scenario)(const void *), const void *argument)
{
	int log = open("/tmp", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	bool well = true;
	int status = 0;
	long number = 0;

	while (well && status != ALL_DONE)
	{
		if (ftruncate(log, 0) != 0)
		{
			abort();
		}
		status = run_apart(scenario, argument, ++number, log);
		well = ended_well(status, said(log));
	}
	if (!well)
	{
		printf("%s\nnot ok - %s: allocation %ld, status %d\n", said(log), name, number, status);
	}
	else
	{
		printf("ok - %s: each of %ld allocations has failed\n", name, number - 1);
	}
	fflush(stdout);
	close(log);
	return well;
}

#endif
