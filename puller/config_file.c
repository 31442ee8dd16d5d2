/* SPDX-License-Identifier: PostgreSQL */
#include "config_file.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"

#define SECTION "inbox-puller"
#define LINE_LIMIT 8192

/*
 * inih cuts longer lines in two, by default at 200 bytes, less than the name of a subscription
 * may take. Debian's build lets us say more; where it cannot be said, a long line is refused.
 */
extern int ini_max_line __attribute__((weak));

struct reading
{
	const char *path;
	FILE *file;
	struct layer *layer;
	struct fault *fault; /* reading ends with the first one */
	int line;
	bool continues;		   /* the line begins with a space */
	int given[OPTION_MAX]; /* by row: the line */
};

/* "remedy" is copied; takes "fact" over. */
static void
fail(struct reading *reading, char *fact, const char *remedy)
{
	(void) fault_set(reading->fault, memory_format("%s:%d: %s", reading->path, reading->line, fact),
					 memory_copy_text(remedy));
	free(fact);
}

/* A line for inih, or NULL at the end and after a fault. */
static char *
next_line(char *out, int room, void *context)
{
	struct reading *reading = context;
	char *line = NULL;
	size_t capacity = 0;
	ssize_t size;

	if (reading->fault->fact != NULL || (size = getline(&line, &capacity, reading->file)) < 0)
	{
		/* Without memory for a line the file would end before it, and be taken for whole. */
		if (reading->fault->fact == NULL && !feof(reading->file) && !ferror(reading->file))
		{
			memory_exhausted();
		}
		free(line);
		return NULL;
	}
	reading->line++;
	reading->continues = line[0] == ' ' || line[0] == '\t';
	if (memchr(line, '\0', (size_t) size) != NULL)
	{
		fail(reading, memory_copy_text("the line holds a NUL byte"), NULL);
	}
	else if (size >= room - 1)
	{
		fail(reading, memory_format("the line is longer than %d bytes", room - 2),
			 "Shorten it, or give the value as a flag or in the environment.");
	}
	else
	{
		memcpy(out, line, (size_t) size + 1);
	}
	free(line);
	return reading->fault->fact == NULL ? out : NULL;
}

static void
fail_unknown(struct reading *reading, const char *name)
{
	const struct option_row *nearest = option_nearest(name);
	char *remedy = nearest != NULL ? memory_format("Did you mean \"%s\"?", nearest->name)
								   : memory_copy_text("inbox-puller --help lists the options.");

	fail(reading, memory_format("\"%s\" is not an option", name), remedy);
	free(remedy);
}

static void
fail_twice(struct reading *reading, const struct option_row *row, int first)
{
	if (reading->continues)
	{
		fail(reading,
			 memory_format("the line begins with a space and so continues \"%s\" of line %d, which "
						   "takes one value",
						   row->name, first),
			 "Remove the space.");
	}
	else
	{
		fail(reading, memory_format("\"%s\" was given on line %d already", row->name, first),
			 "Remove one of the two.");
	}
}

static bool
take(struct reading *reading, const struct option_row *row, const char *value)
{
	int *given = &reading->given[row - option_table];
	char *place;
	bool is_set;

	if (*given != 0 && row->kind != OPTION_KEYS)
	{
		fail_twice(reading, row, *given);
		return false;
	}
	*given = reading->line;
	place = memory_format("%s:%d: %s", reading->path, reading->line, row->name);
	is_set = layer_set(reading->layer, row, value, place, reading->fault);
	free(place);
	return is_set;
}

/* Called by inih for each key; 0 means that it was not accepted. */
static int
take_key(void *context, const char *section, const char *name, const char *value)
{
	struct reading *reading = context;
	const struct option_row *row = option_find(name);

	if (section[0] != '\0' && strcmp(section, SECTION) != 0)
	{
		fail(reading, memory_format("the section [%s] is not known", section),
			 "Options stand before any section or in [" SECTION "].");
	}
	else if (row == NULL || !option_is_setting(row))
	{
		fail_unknown(reading, name);
	}
	else
	{
		return take(reading, row, value);
	}
	return false;
}

static bool
fail_to_read(const char *path, struct fault *fault)
{
	return fault_set(
		fault,
		memory_format("could not read the configuration file \"%s\": %s", path, strerror(errno)),
		memory_copy_text("Correct --config or INBOX_CONFIG, or the file's rights."));
}

bool
config_file_read(const char *path, struct layer *layer, struct fault *fault)
{
	struct reading reading = {.path = path, .layer = layer, .fault = fault};
	int bad_line;

	if (&ini_max_line != NULL)
	{
		ini_max_line = LINE_LIMIT;
	}
	errno = 0;
	reading.file = fopen(path, "re");
	if (reading.file == NULL)
	{
		return fail_to_read(path, fault);
	}
	bad_line = ini_parse_stream(next_line, &reading, take_key, &reading);
	if (ferror(reading.file))
	{
		(void) fail_to_read(path, fault);
	}
	else if (bad_line > 0 && (fault->fact == NULL || bad_line < reading.line))
	{
		reading.line = bad_line;
		fail(&reading, memory_copy_text("the line is neither a [section] nor name = value"),
			 "Comments begin with # or ;.");
	}
	fclose(reading.file);
	return fault->fact == NULL;
}
