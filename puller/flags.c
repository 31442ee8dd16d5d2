/* SPDX-License-Identifier: PostgreSQL */
#include "flags.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define NO_PREFIX "no-"

/* What getopt_long() returns: above every character, twice the row, plus 1 for --no-name. */
#define CODE_BASE 256

struct getopt_table
{
	struct option option[2 * OPTION_MAX + 1];
	char negated[OPTION_MAX][OPTION_NAME_SIZE];
};

static void
fill_table(struct getopt_table *table)
{
	struct option *next = table->option;

	memset(table, 0, sizeof(*table));
	for (size_t i = 0; i < option_count; i++)
	{
		const struct option_row *row = &option_table[i];
		int code = CODE_BASE + 2 * (int) i;

		next->name = row->name;
		next->has_arg = row->kind == OPTION_HELP ? optional_argument
						: row->metavar != NULL	 ? required_argument
												 : no_argument;
		next++->val = code;
		if (row->kind == OPTION_BOOL)
		{
			snprintf(table->negated[i], OPTION_NAME_SIZE, NO_PREFIX "%s", row->name);
			next->name = table->negated[i];
			next++->val = code + 1;
		}
	}
}

static bool
fail_usage(struct fault *fault, char *fact)
{
	return fault_set(fault, fact, memory_copy_text("inbox-puller --help lists the options."));
}

/* A flag that getopt_long() did not find, or that is the beginning of several. */
static bool
fail_unknown(const char *argument, struct fault *fault)
{
	const char *name = argument + strspn(argument, "-");
	char *plain = memory_copy(name, strcspn(name, "="));
	bool negated = strncmp(plain, NO_PREFIX, strlen(NO_PREFIX)) == 0;
	const struct option_row *nearest = option_nearest(plain + (negated ? strlen(NO_PREFIX) : 0));

	(void) fail_usage(fault, memory_format("--%s is not an option", plain));
	if (nearest != NULL)
	{
		negated = negated && nearest->kind == OPTION_BOOL;
		free(fault->remedy);
		fault->remedy = memory_format("Did you mean --%s%s? inbox-puller --help lists the options.",
									  negated ? NO_PREFIX : "", nearest->name);
	}
	free(plain);
	return false;
}

/* getopt_long() has returned '?' or ':'; "argument" is the one it stopped at. */
static bool
fail_flag(int code, const char *argument, struct fault *fault)
{
	const struct option_row *row;

	if (optopt > 0 && optopt < CODE_BASE)
	{
		return fail_usage(fault, memory_format("-%c is not an option", optopt));
	}
	if (optopt == 0)
	{
		return fail_unknown(argument, fault);
	}
	row = &option_table[(optopt - CODE_BASE) / 2];
	if (code == ':')
	{
		return fail_usage(fault, memory_format("--%s needs a value", row->name));
	}
	return fail_usage(fault, memory_format("--%s takes no value", row->name));
}

static void
add_flag(struct flags *flags, int code)
{
	const struct option_row *row = &option_table[(code - CODE_BASE) / 2];
	struct flag flag = {row, optarg};

	if (row->kind == OPTION_BOOL)
	{
		flag.value = (code - CODE_BASE) % 2 == 0 ? "on" : "off";
	}
	flags->flag[flags->count++] = flag;
}

bool
flags_read(struct flags *flags, int argc, char **argv, struct fault *fault)
{
	struct getopt_table table;
	int code;

	fill_table(&table);
	flags->flag = memory_new((size_t) argc * sizeof(struct flag));
	flags->count = 0;
	opterr = 0;
	optind = 0; /* makes glibc and musl start again */
	/* "+" stops at the first argument that is no flag, ":" tells a missing value from the rest. */
	while ((code = getopt_long(argc, argv, "+:", table.option, NULL)) != -1)
	{
		if (code == '?' || code == ':')
		{
			return fail_flag(code, argv[optind - 1], fault);
		}
		add_flag(flags, code);
	}
	if (optind < argc)
	{
		return fail_usage(
			fault,
			memory_format("\"%s\" is not expected: every argument is an option", argv[optind]));
	}
	return true;
}

const struct flag *
flags_find(const struct flags *flags, enum option_kind kind)
{
	for (size_t i = flags->count; i > 0; i--)
	{
		if (flags->flag[i - 1].row->kind == kind)
		{
			return &flags->flag[i - 1];
		}
	}
	return NULL;
}

bool
flags_apply(const struct flags *flags, struct config *config, struct fault *fault)
{
	struct layer layer = {.config = config};

	for (size_t i = 0; i < flags->count; i++)
	{
		const struct flag *flag = &flags->flag[i];
		char place[OPTION_NAME_SIZE];

		snprintf(place, sizeof(place), "--%s", flag->row->name);
		if (option_is_setting(flag->row) &&
			!layer_set(&layer, flag->row, flag->value, place, fault))
		{
			return false;
		}
	}
	return true;
}
