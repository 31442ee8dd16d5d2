/* SPDX-License-Identifier: PostgreSQL */
#include "check_report.h"

#include <stdlib.h>

#include "memory.h"

#define NAME_WIDTH 20

void
check_report_begin(struct check_report *report, FILE *out, bool json)
{
	*report = (struct check_report){.out = out};
	if (json)
	{
		report->facts = json_object_new_array();
	}
}

void
check_report_group(struct check_report *report, const char *group)
{
	report->group = group;
	if (report->facts == NULL)
	{
		fprintf(report->out, "%s\n", group);
	}
}

/* Error messages of libpq have several lines, and a server's may hold anything. */
static void
make_one_line(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; from++)
	{
		char byte = (unsigned char) *from < ' ' || *from == 127 ? ' ' : *from;

		if (byte != ' ' || (to > text && to[-1] != ' '))
		{
			*to++ = byte;
		}
	}
	if (to > text && to[-1] == ' ')
	{
		to--;
	}
	*to = '\0';
}

static void
write_line(struct check_report *report, const char *mark, const char *name, const char *value,
		   const char *remedy)
{
	fprintf(report->out, "  %s %-*s %s%s%s\n", mark, NAME_WIDTH, name, value,
			remedy != NULL ? " \u2192 " : "", remedy != NULL ? remedy : "");
	/* The next fact may take its time. */
	fflush(report->out);
}

/* Names for machines are written with "_". */
static struct json_object *
json_name(const char *name)
{
	char *copy = memory_copy_text(name);
	struct json_object *object;

	for (char *at = copy; *at != '\0'; at++)
	{
		*at = *at == ' ' || *at == '-' ? '_' : *at;
	}
	object = json_object_new_string(copy);
	free(copy);
	return object;
}

static void
add_object(struct check_report *report, const bool *ok, const char *name, const char *value,
		   const char *remedy)
{
	struct json_object *fact = json_object_new_object();

	json_object_object_add(fact, "about", json_object_new_string(report->group));
	json_object_object_add(fact, "name", json_name(name));
	json_object_object_add(fact, "ok", ok != NULL ? json_object_new_boolean(*ok) : NULL);
	json_object_object_add(fact, "value", json_object_new_string(value));
	json_object_object_add(fact, "remedy", remedy != NULL ? json_object_new_string(remedy) : NULL);
	json_object_array_add(report->facts, fact);
}

/* "ok" is NULL for a fact without a verdict. */
static void
add_fact(struct check_report *report, const bool *ok, const char *name, char *value, char *remedy)
{
	make_one_line(value);
	if (remedy != NULL)
	{
		make_one_line(remedy);
	}
	if (report->facts != NULL)
	{
		add_object(report, ok, name, value, remedy);
	}
	else
	{
		write_line(report, ok == NULL ? "\u00b7" : *ok ? "\u2713" : "\u2717", name, value, remedy);
	}
	free(value);
	free(remedy);
}

void
check_report_ok(struct check_report *report, const char *name, char *value)
{
	static const bool yes = true;

	add_fact(report, &yes, name, value, NULL);
}

void
check_report_note(struct check_report *report, const char *name, char *value)
{
	add_fact(report, NULL, name, value, NULL);
}

void
check_report_problem(struct check_report *report, const char *name, char *value, char *remedy)
{
	static const bool no = false;

	report->problems++;
	add_fact(report, &no, name, value, remedy);
}

static void
write_document(struct check_report *report)
{
	struct json_object *document = json_object_new_object();

	json_object_object_add(document, "version", json_object_new_string(INBOX_VERSION));
	json_object_object_add(document, "problems", json_object_new_int(report->problems));
	json_object_object_add(document, "facts", report->facts);
	fprintf(report->out, "%s\n",
			json_object_to_json_string_ext(document, JSON_C_TO_STRING_PRETTY |
														 JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(document);
	report->facts = NULL;
}

int
check_report_end(struct check_report *report)
{
	if (report->facts != NULL)
	{
		write_document(report);
	}
	else if (report->problems == 0)
	{
		fputs("no problems\n", report->out);
	}
	else
	{
		fprintf(report->out, "%d problem%s\n", report->problems, report->problems == 1 ? "" : "s");
	}
	fflush(report->out);
	return report->problems == 0 ? 0 : 2;
}
