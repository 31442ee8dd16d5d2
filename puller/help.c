/* SPDX-License-Identifier: PostgreSQL */
#include "help.h"

#include <stdlib.h>
#include <string.h>

#include "completion.h"
#include "memory.h"
#include "option.h"

#define WIDTH 79

struct section
{
	const char *title;
	const char *text; /* paragraphs, separated by line breaks */
};

static const char summary[] =
	"consumes a Google Cloud Pub/Sub subscription into PostgreSQL so that "
	"every message takes effect once";

static const char description[] =
	"Pulls messages, runs the handler, a SQL function, for each in a transaction that also records "
	"the message's key, and acknowledges what is committed. A message whose key is already "
	"recorded runs no handler. The database needs the extension inbox.";

/* What --help and the manual page say after the options. */
static const struct section sections[] = {
	{"Values",
	 "A flag comes before the environment, that before the file, that before the default. A flag "
	 "that takes a value is written --name VALUE or --name=VALUE, one that takes none --name or "
	 "--no-name.\n"
	 "Every option is also read from the environment as INBOX_NAME, in capitals and with _ for -, "
	 "and from the file as name = value; there, on and off stand for --name and --no-name. An "
	 "empty variable counts as not set.\n"
	 "A TIME is a whole number with ms, s, min or h; BYTES are one with B, kB, MB or GB, where 1 "
	 "kB is 1024 bytes."},
	{"Environment",
	 "PUBSUB_EMULATOR_HOST names an emulator as HOST:PORT. PGHOST, PGSERVICE, PGPASSFILE and "
	 "libpq's other variables hold for the database."},
	{"Signals",
	 "SIGTERM and SIGINT stop the puller within --grace; a second one stops it at once. SIGHUP "
	 "reads the file again; options that need a restart say so in the log."},
	{"Exit status",
	 "0 stopped as asked, or no problems found by --check; 1 usage or configuration; 2 refused to "
	 "start, as the extension or the source does not fit, or problems found by --check; 3 internal "
	 "error."},
};

#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

/* Writes a text in lines of at most WIDTH, each after the prefix; line breaks are kept. */
static void
write_wrapped(FILE *out, const char *prefix, const char *text)
{
	size_t column = 0;

	while (*text != '\0')
	{
		size_t size = strcspn(text, " \n");

		if (column > 0 && column + 1 + size > WIDTH)
		{
			fputc('\n', out);
			column = 0;
		}
		column += (size_t) fprintf(out, "%s%.*s", column == 0 ? prefix : " ", (int) size, text);
		text += size;
		if (*text == '\n')
		{
			fputc('\n', out);
			column = 0;
		}
		text += *text != '\0';
	}
	fputc('\n', out);
}

/* What can be said of a row from its other columns; to be freed. */
static char *
facts(const struct option_row *row)
{
	const char *initial = row->computed ? row->sample : row->initial;
	char *first, *both;

	if (row->kind == OPTION_CONFIG)
	{
		return memory_copy_text("Environment: INBOX_CONFIG.");
	}
	first = initial != NULL ? memory_format("Default: %s.", initial) : memory_copy_text("");
	both = memory_format("%s%s%s", first, initial != NULL && row->reloadable ? " " : "",
						 row->reloadable ? "Reloaded by SIGHUP." : "");
	free(first);
	return both;
}

/* "--name=VALUE", to be freed. */
static char *
flag(const struct option_row *row)
{
	if (row->kind == OPTION_BOOL)
	{
		return memory_format("--%s, --no-%s", row->name, row->name);
	}
	if (row->kind == OPTION_HELP)
	{
		return memory_format("--%s[=%s]", row->name, row->metavar);
	}
	return row->metavar != NULL ? memory_format("--%s=%s", row->name, row->metavar)
								: memory_format("--%s", row->name);
}

/* ---- --help ------------------------------------------------------------------------------- */

static void
write_text_row(FILE *out, const struct option_row *row)
{
	char *name = flag(row);
	char *fact = facts(row);
	char *text = memory_format("%s%s%s", row->help, fact[0] != '\0' ? " " : "", fact);

	fprintf(out, "  %s\n", name);
	write_wrapped(out, "        ", text);
	free(text);
	free(fact);
	free(name);
}

static void
write_text(FILE *out)
{
	char *about = memory_format("inbox-puller %s.", summary);

	write_wrapped(out, "", about);
	free(about);
	fputs("\nUsage:\n  inbox-puller --subscription=NAME --handler=FUNCTION [OPTION]...\n\n", out);
	write_wrapped(out, "", description);
	for (size_t group = 0; group < OPTION_GROUPS; group++)
	{
		fprintf(out, "\n%s:\n", option_group_title[group]);
		for (size_t i = 0; i < option_count; i++)
		{
			if (option_table[i].group == group)
			{
				write_text_row(out, &option_table[i]);
			}
		}
	}
	for (size_t i = 0; i < SECTIONS; i++)
	{
		fprintf(out, "\n%s:\n", sections[i].title);
		write_wrapped(out, "  ", sections[i].text);
	}
}

/* ---- the sample file ---------------------------------------------------------------------- */

static void
write_ini(FILE *out)
{
	write_wrapped(out, "# ",
				  "Options of inbox-puller, read with --config FILE or INBOX_CONFIG. Each stands "
				  "here with its default, or with what it looks like where it has none. Remove the "
				  "# in front of a name to set it. Flags and the environment come before this "
				  "file.\n"
				  "A space and a ; begin a comment, at the end of a line, too. A line that begins "
				  "with a space continues the list of the line before.");
	fputs("\n[inbox-puller]\n", out);
	for (size_t i = 0; i < option_count; i++)
	{
		const struct option_row *row = &option_table[i];

		if (!option_is_setting(row))
		{
			continue;
		}
		if (i == 0 || row->group != option_table[i - 1].group)
		{
			fprintf(out, "\n# ---- %s ----\n", option_group_title[row->group]);
		}
		fputc('\n', out);
		write_wrapped(out, "# ", row->help);
		fprintf(out, "#%s = %s\n", row->name, row->initial != NULL ? row->initial : row->sample);
	}
}

/* ---- the manual page ---------------------------------------------------------------------- */

/* Text for roff: a hyphen is a minus that can be copied, and no line is taken for a request. */
static void
write_roff(FILE *out, const char *text)
{
	bool at_start = true;

	for (; *text != '\0'; text++)
	{
		if (at_start && (*text == '.' || *text == '\''))
		{
			fputs("\\&", out);
		}
		at_start = *text == '\n';
		if (*text == '-' || *text == '\\')
		{
			fputs(*text == '-' ? "\\-" : "\\e", out);
		}
		else
		{
			fputs(at_start ? "\n.PP\n" : (char[2]){*text, '\0'}, out);
		}
	}
	fputc('\n', out);
}

static void
write_roff_row(FILE *out, const struct option_row *row)
{
	char *name = flag(row);
	char *fact = facts(row);

	fputs(".TP\n.B ", out);
	write_roff(out, name);
	write_roff(out, row->help);
	if (fact[0] != '\0')
	{
		write_roff(out, fact);
	}
	free(fact);
	free(name);
}

static void
write_man(FILE *out)
{
	fputs(".TH INBOX\\-PULLER 1 \"\" \"inbox " INBOX_VERSION "\"\n.SH Name\ninbox\\-puller \\- ",
		  out);
	write_roff(out, summary);
	fputs(".SH Synopsis\n.B inbox\\-puller\n\\-\\-subscription=NAME \\-\\-handler=FUNCTION "
		  "[OPTION]...\n.SH Description\n",
		  out);
	write_roff(out, description);
	fputs(".SH Options\n", out);
	for (size_t group = 0; group < OPTION_GROUPS; group++)
	{
		fprintf(out, ".SS %s\n", option_group_title[group]);
		for (size_t i = 0; i < option_count; i++)
		{
			if (option_table[i].group == group)
			{
				write_roff_row(out, &option_table[i]);
			}
		}
	}
	for (size_t i = 0; i < SECTIONS; i++)
	{
		fprintf(out, ".SH %s\n", sections[i].title);
		write_roff(out, sections[i].text);
	}
}

bool
help_write(FILE *out, const char *format)
{
	static const struct
	{
		const char *format;
		void (*write)(FILE *);
	} writers[] = {{"text", write_text},
				   {"ini", write_ini},
				   {"man", write_man},
				   {"bash", completion_write_bash},
				   {"zsh", completion_write_zsh}};

	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++)
	{
		if (strcmp(writers[i].format, format) == 0)
		{
			writers[i].write(out);
			return true;
		}
	}
	return false;
}
