/* SPDX-License-Identifier: PostgreSQL */
/*
 * Run in puller/, where the sample file is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "load.h"
#include "memory.h"
#include "option.h"
#include "value.h"

/* What --help and the like write, to be freed. */
static char *
answer(const char *flag)
{
	struct loaded loaded;
	char *out;

	LOAD(&loaded, flag);
	assert_int_equal(loaded.outcome, CONFIG_DONE);
	assert_string_equal(loaded.err, "");
	out = memory_copy_text(loaded.out);
	unload(&loaded);
	return out;
}

static void
expect_part(const char *text, char *part)
{
	if (strstr(text, part) == NULL)
	{
		fail_msg("\"%s\" is missing", part);
	}
	free(part);
}

static void
test_version(void **state)
{
	char *out = answer("--version");

	(void) state;
	assert_string_equal(out, "inbox-puller " INBOX_VERSION "\n");
	free(out);
}

static void
test_help_lists_every_option(void **state)
{
	char *out = answer("--help");

	(void) state;
	for (size_t i = 0; i < option_count; i++)
	{
		const struct option_row *row = &option_table[i];
		const char *after = row->kind == OPTION_HELP   ? "[=FORMAT]"
							: row->kind == OPTION_BOOL ? ", --no-"
							: row->metavar != NULL	   ? "="
													   : "";

		expect_part(out, memory_format("\n  --%s%s", row->name, after));
	}
	for (size_t i = 0; i < OPTION_GROUPS; i++)
	{
		expect_part(out, memory_format("\n%s:\n", option_group_title[i]));
	}
	free(out);
}

static void
test_help_fits_a_terminal(void **state)
{
	char *out = answer("--help");

	(void) state;
	for (char *line = strtok(out, "\n"); line != NULL; line = strtok(NULL, "\n"))
	{
		assert_true(strlen(line) < 80);
	}
	free(out);
}

static void
test_manual_lists_every_option(void **state)
{
	char *out = answer("--help=man");

	(void) state;
	expect_part(out, memory_format(".TH INBOX\\-PULLER 1 \"\" \"inbox %s\"\n", INBOX_VERSION));
	for (size_t i = 0; i < option_count; i++)
	{
		char name[2 * OPTION_NAME_SIZE] = "";

		for (const char *at = option_table[i].name; *at != '\0'; at++)
		{
			strcat(name, *at == '-' ? "\\-" : (char[2]){*at, '\0'});
		}
		expect_part(out, memory_format("\n.TP\n.B \\-\\-%s", name));
	}
	free(out);
}

/* ---- the sample file ---------------------------------------------------------------------- */

static char *
read_sample(void)
{
	char *text = memory_new(1 << 16);
	FILE *file = fopen("puller.ini", "r");

	assert_non_null(file);
	assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
	fclose(file);
	return text;
}

static void
test_sample_is_up_to_date(void **state)
{
	char *sample = read_sample();
	char *written = answer("--help=ini");

	(void) state;
	if (strcmp(sample, written) != 0)
	{
		fail_msg("puller.ini differs from the options: inbox-puller --help=ini >puller.ini");
	}
	free(written);
	free(sample);
}

static void
test_sample_has_every_default(void **state)
{
	char *sample = read_sample();

	(void) state;
	for (size_t i = 0; i < option_count; i++)
	{
		const struct option_row *row = &option_table[i];

		if (option_is_setting(row))
		{
			assert_true((row->initial != NULL) != (row->sample != NULL));
			expect_part(sample, memory_format("\n#%s = %s\n", row->name,
											  row->initial != NULL ? row->initial : row->sample));
		}
	}
	free(sample);
}

/* With every # in front of a default taken away, the file says what no file says. */
static void
test_sample_defaults_are_the_defaults(void **state)
{
	struct loaded plain, sampled;
	char *text = memory_copy_text("");
	char path[64];

	(void) state;
	for (size_t i = 0; i < option_count; i++)
	{
		if (option_is_setting(&option_table[i]) && option_table[i].initial != NULL)
		{
			char *longer =
				memory_format("%s%s = %s\n", text, option_table[i].name, option_table[i].initial);

			free(text);
			text = longer;
		}
	}
	write_file(path, text, strlen(text));
	LOAD_GOOD(&plain);
	LOAD_GOOD(&sampled, "--config", path);
	assert_string_equal(sampled.err, "");
	for (size_t i = 0; i < option_count; i++)
	{
		const struct option_row *row = &option_table[i];

		if (option_is_setting(row) && row->initial != NULL)
		{
			char *one = value_text(row, &plain.config);
			char *other = value_text(row, &sampled.config);

			assert_string_equal(one, other);
			free(one);
			free(other);
		}
	}
	unload(&plain);
	unload(&sampled);
	unlink(path);
	free(text);
}

static void
test_the_sample_itself_is_valid(void **state)
{
	struct loaded loaded;

	(void) state;
	LOAD_GOOD(&loaded, "--config", "puller.ini");
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.outcome, CONFIG_RUN);
	unload(&loaded);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_help_lists_every_option),
		cmocka_unit_test(test_help_fits_a_terminal),
		cmocka_unit_test(test_manual_lists_every_option),
		cmocka_unit_test(test_sample_is_up_to_date),
		cmocka_unit_test(test_sample_has_every_default),
		cmocka_unit_test(test_sample_defaults_are_the_defaults),
		cmocka_unit_test(test_the_sample_itself_is_valid),
	};

	load_clean_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
