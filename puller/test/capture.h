/* SPDX-License-Identifier: PostgreSQL */
/*
 * Catches what is written to a descriptor, in a file that has no name.
 */
#ifndef INBOX_TEST_CAPTURE_H
#define INBOX_TEST_CAPTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct capture
{
	FILE *file;
	int target; /* the descriptor that is caught */
	int saved;	/* what it was */
};

static inline struct capture
capture_start(int target)
{
	struct capture capture = {tmpfile(), target, dup(target)};

	fflush(stdout);
	if (capture.file == NULL || capture.saved < 0 || dup2(fileno(capture.file), target) < 0)
	{
		abort();
	}
	return capture;
}

/* Puts the descriptor back; returns what was caught, to be freed. */
static inline char *
capture_end(struct capture *capture)
{
	long size;
	char *text;

	fflush(stdout);
	dup2(capture->saved, capture->target);
	close(capture->saved);
	fseek(capture->file, 0, SEEK_END);
	size = ftell(capture->file);
	rewind(capture->file);
	text = calloc(1, (size_t) size + 1);
	if (text == NULL || fread(text, 1, (size_t) size, capture->file) != (size_t) size)
	{
		abort();
	}
	fclose(capture->file);
	return text;
}

#endif
