/* SPDX-License-Identifier: PostgreSQL */
#include "exposition.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

#define NUMBER_SIZE 32

static void
add(struct buffer *out, const char *bytes, size_t size)
{
	/* Past the limit the answer is cut, and a scraper refuses what is left. */
	(void) !buffer_append(out, bytes, size);
}

void
exposition_begin(struct buffer *out, const char *name, const char *type, const char *help)
{
	text_add(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Values come from messages and from the configuration: what would end the line is escaped. */
static void
add_escaped(struct buffer *out, const char *value)
{
	for (; *value != '\0'; value++)
	{
		size_t plain = strcspn(value, "\\\"\n");

		add(out, value, plain);
		value += plain;
		if (*value == '\0')
		{
			return;
		}
		add(out, *value == '\n' ? "\\n" : *value == '"' ? "\\\"" : "\\\\", 2);
	}
}

static void
add_labels(struct buffer *out, const struct exposition_label *labels)
{
	const char *before = "{";

	for (; labels != NULL && labels->name != NULL; labels++)
	{
		if (labels->value != NULL && labels->value[0] != '\0')
		{
			text_add(out, "%s%s=\"", before, labels->name);
			add_escaped(out, labels->value);
			add(out, "\"", 1);
			before = ",";
		}
	}
	if (*before == ',')
	{
		add(out, "}", 1);
	}
}

void
exposition_count(struct buffer *out, const char *name, const struct exposition_label *labels,
				 uint64_t value)
{
	text_add(out, "%s", name);
	add_labels(out, labels);
	text_add(out, " %" PRIu64 "\n", value);
}

/* As short as it can be read back exactly; 0.1 is not to become 0.10000000000000001. */
static const char *
format_number(double value, char number[NUMBER_SIZE])
{
	if (isinf(value))
	{
		return value > 0 ? "+Inf" : "-Inf";
	}
	for (int digits = 6; digits <= 17; digits++)
	{
		double again = 0;

		snprintf(number, NUMBER_SIZE, "%.*g", digits, value);
		if (sscanf(number, "%lf", &again) == 1 && again == value)
		{
			break;
		}
	}
	return number;
}

void
exposition_value(struct buffer *out, const char *name, const struct exposition_label *labels,
				 double value)
{
	char number[NUMBER_SIZE];

	text_add(out, "%s", name);
	add_labels(out, labels);
	text_add(out, " %s\n", format_number(value, number));
}

void
exposition_histogram(struct buffer *out, const char *name, const char *help,
					 const struct histogram *histogram)
{
	char number[NUMBER_SIZE];
	uint64_t below = 0;

	exposition_begin(out, name, "histogram", help);
	for (size_t i = 0; i <= histogram->bound_count; i++)
	{
		double bound = i < histogram->bound_count ? histogram->bounds[i] : (double) INFINITY;

		below += histogram->bucket[i];
		text_add(out, "%s_bucket{le=\"%s\"} %" PRIu64 "\n", name, format_number(bound, number),
				 below);
	}
	text_add(out, "%s_sum %s\n", name, format_number(histogram->sum, number));
	text_add(out, "%s_count %" PRIu64 "\n", name, histogram->count);
}
