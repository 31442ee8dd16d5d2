/* SPDX-License-Identifier: PostgreSQL */
#include "completion.h"

#include <string.h>

#include "option.h"

/* ---- bash --------------------------------------------------------------------------------- */

/* Bash takes --name=VALUE apart into three words. */
static const char bash_begin[] =
	"# bash completion for inbox-puller\n"
	"_inbox_puller()\n"
	"{\n"
	"\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} list=\n"
	"\tif [[ $word == = ]]; then\n"
	"\t\tword= before+==\n"
	"\telif [[ $before == = ]]; then\n"
	"\t\tbefore=${COMP_WORDS[COMP_CWORD-2]}=\n"
	"\tfi\n"
	"\tCOMPREPLY=()\n"
	"\tcase $before in\n";

static const char bash_end[] = "\tesac\n"
							   "\tmapfile -t COMPREPLY < <(compgen -W \"$list\" -- \"$word\")\n"
							   "}\n"
							   "complete -F _inbox_puller inbox-puller\n";

static bool
takes_file(const struct option_row *row)
{
	return row->metavar != NULL && strcmp(row->metavar, "FILE") == 0;
}

static void
write_choices(FILE *out, const struct option_row *row)
{
	for (size_t i = 0; row->choices != NULL && row->choices[i] != NULL; i++)
	{
		fprintf(out, "%s%s", i == 0 ? "" : " ", row->choices[i]);
	}
}

/* What follows --name. A value that may be left out only follows --name=. */
static void
write_bash_value(FILE *out, const struct option_row *row)
{
	fprintf(out, row->kind == OPTION_HELP ? "\t--%s=)" : "\t--%1$s|--%1$s=)", row->name);
	if (takes_file(row))
	{
		fputs(" compopt -o filenames 2>/dev/null\n"
			  "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n",
			  out);
		return;
	}
	fputs(" list='", out);
	write_choices(out, row);
	fputs("' ;;\n", out);
}

void
completion_write_bash(FILE *out)
{
	fputs(bash_begin, out);
	for (size_t i = 0; i < option_count; i++)
	{
		if (option_table[i].metavar != NULL)
		{
			write_bash_value(out, &option_table[i]);
		}
	}
	fputs("\t*) list='", out);
	for (size_t i = 0; i < option_count; i++)
	{
		fprintf(out, "%s--%s", i == 0 ? "" : " ", option_table[i].name);
		if (option_table[i].kind == OPTION_BOOL)
		{
			fprintf(out, " --no-%s", option_table[i].name);
		}
	}
	fputs("' ;;\n", out);
	fputs(bash_end, out);
}

/* ---- zsh ---------------------------------------------------------------------------------- */

/* The first sentence of what --help says, within [ ] and ' '. */
static void
write_zsh_help(FILE *out, const char *help)
{
	const char *end = strstr(help, ". ");
	size_t size = end != NULL ? (size_t) (end - help) : strlen(help) - 1;

	for (size_t i = 0; i < size; i++)
	{
		switch (help[i])
		{
			case '\'':
				fputs("'\\''", out);
				break;
			case '[':
			case ']':
			case '\\':
			case ':':
				fputc('\\', out);
				fputc(help[i], out);
				break;
			default:
				fputc(help[i], out);
		}
	}
}

/* prefix: "no-" or nothing. */
static void
write_zsh_flag(FILE *out, const char *prefix, const struct option_row *row)
{
	const char *equals = row->metavar == NULL ? "" : row->kind == OPTION_HELP ? "=-" : "=";

	fprintf(out, "\t'%s--%s%s%s[", row->kind == OPTION_KEYS ? "*" : "", prefix, row->name, equals);
	write_zsh_help(out, row->help);
	fputc(']', out);
	if (row->metavar != NULL)
	{
		fprintf(out, "%s%s:", row->kind == OPTION_HELP ? "::" : ":", row->metavar);
		if (takes_file(row))
		{
			fputs("_files", out);
		}
		else if (row->choices != NULL)
		{
			fputc('(', out);
			write_choices(out, row);
			fputc(')', out);
		}
		else
		{
			fputc(' ', out); /* shows what is asked for */
		}
	}
	fputs("' \\\n", out);
}

void
completion_write_zsh(FILE *out)
{
	fputs("#compdef inbox-puller\n_arguments \\\n", out);
	for (size_t i = 0; i < option_count; i++)
	{
		write_zsh_flag(out, "", &option_table[i]);
		if (option_table[i].kind == OPTION_BOOL)
		{
			write_zsh_flag(out, "no-", &option_table[i]);
		}
	}
	fputs("\t&& return 0\n", out);
}
