/* SPDX-License-Identifier: PostgreSQL */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_check.h"
#include "config_file.h"
#include "flags.h"
#include "help.h"
#include "layer.h"
#include "memory.h"
#include "timestamp.h"
#include "value.h"

/* Kept for config_reload(). */
struct config_origin
{
	struct flags flags;
	char *file; /* NULL for none */
};

/* ---- loading ------------------------------------------------------------------------------ */

static const char *
file_name(const struct flags *flags)
{
	const struct flag *flag = flags_find(flags, OPTION_CONFIG);
	const char *variable = getenv("INBOX_CONFIG");

	if (flag != NULL)
	{
		return flag->value;
	}
	return variable != NULL && variable[0] != '\0' ? variable : NULL;
}

static bool
read_file(const char *file, struct config *config, struct fault *fault)
{
	struct layer layer = {.config = config, .splits_lists = true};

	return file == NULL || config_file_read(file, &layer, fault);
}

/* All layers over each other, and what follows from them. */
static bool
gather(struct config *config, const struct config_origin *origin, struct fault *fault)
{
	return layer_defaults(config, fault) && read_file(origin->file, config, fault) &&
		   layer_environment(config, fault) && flags_apply(&origin->flags, config, fault) &&
		   config_check(config, fault);
}

/*
 * Variables that begin with INBOX_ and are no options are no error: Kubernetes, for one, sets
 * INBOX_PORT and the like where a service is named inbox. Those that look misspelt are told.
 */
static void
warn_of_environment(void)
{
	static const char prefix[] = "INBOX_";

	for (char **variable = environ; *variable != NULL; variable++)
	{
		char name[OPTION_NAME_SIZE] = "", meant[OPTION_NAME_SIZE];
		size_t size = strcspn(*variable, "=");
		const struct option_row *nearest;

		if (strncmp(*variable, prefix, strlen(prefix)) != 0 || size >= sizeof(name))
		{
			continue;
		}
		for (size_t i = strlen(prefix); i < size; i++)
		{
			char letter = (*variable)[i];

			name[i - strlen(prefix)] = letter == '_' ? '-' : (char) tolower((unsigned char) letter);
		}
		nearest = option_find(name) == NULL ? option_nearest(name) : NULL;
		if (nearest != NULL)
		{
			option_environment_name(nearest, meant);
			fprintf(stderr, "inbox-puller: warning: %.*s is not read: did you mean %s?\n",
					(int) size, *variable, meant);
		}
	}
}

static enum config_outcome
answer(const struct flag *help, struct fault *fault)
{
	const char *format = help == NULL || help->value == NULL ? "text" : help->value;

	if (help == NULL)
	{
		puts("inbox-puller " INBOX_VERSION);
	}
	else if (!help_write(stdout, format))
	{
		(void) fault_set(
			fault, memory_format("--help: \"%s\" is not one of text, ini, man", format), NULL);
		return CONFIG_BAD;
	}
	if (fflush(stdout) != 0)
	{
		(void) fault_set(fault, memory_copy_text("could not write to standard output"), NULL);
		return CONFIG_BAD;
	}
	return CONFIG_DONE;
}

static bool
check_seek(const struct config *config, bool with_check, struct fault *fault)
{
	int64_t time;

	if (with_check)
	{
		return fault_set(fault, memory_copy_text("--check and --seek are two things to do"),
						 memory_copy_text("Give one of them."));
	}
	if (strcmp(config->seek, SEEK_RESTORE_POINT) != 0 && !timestamp_parse(config->seek, &time))
	{
		return fault_set(
			fault, memory_format("--seek \"%s\" is not a time", config->seek),
			memory_copy_text("Write it in UTC, as 2026-01-31T12:00:00Z, or " SEEK_RESTORE_POINT
							 " to have it worked out from the database."));
	}
	return true;
}

/* What is done once, in place of consuming. */
static bool
settle_command(struct config *config, const struct flags *flags, struct fault *fault)
{
	const struct flag *seek = flags_find(flags, OPTION_SEEK);
	bool with_check = flags_find(flags, OPTION_CHECK) != NULL;

	config->seek = seek != NULL ? seek->value : NULL;
	config->seek_yes = flags_find(flags, OPTION_YES) != NULL;
	config->check = with_check || seek != NULL;
	config->check_json = flags_find(flags, OPTION_JSON) != NULL;
	if (config->check_json && !config->check)
	{
		return fault_set(fault, memory_copy_text("--json is given without --check or --seek"),
						 memory_copy_text("Add --check; logs are in JSON by --log-format json."));
	}
	if (config->seek_yes && seek == NULL)
	{
		return fault_set(fault, memory_copy_text("--yes is given without --seek"),
						 memory_copy_text("Leave it out, or add --seek."));
	}
	return seek == NULL || check_seek(config, with_check, fault);
}

static enum config_outcome
load(struct config *config, int argc, char **argv, struct fault *fault)
{
	struct config_origin *origin = config->origin;
	const struct flag *help;

	if (!flags_read(&origin->flags, argc, argv, fault))
	{
		return CONFIG_BAD;
	}
	help = flags_find(&origin->flags, OPTION_HELP);
	if (help != NULL || flags_find(&origin->flags, OPTION_VERSION) != NULL)
	{
		return answer(help, fault);
	}
	origin->file = memory_copy_text(file_name(&origin->flags));
	if (!settle_command(config, &origin->flags, fault))
	{
		return CONFIG_BAD;
	}
	warn_of_environment();
	return gather(config, origin, fault) ? CONFIG_RUN : CONFIG_BAD;
}

enum config_outcome
config_load(struct config *config, int argc, char **argv)
{
	struct fault fault = {NULL, NULL};
	enum config_outcome outcome;

	memset(config, 0, sizeof(*config));
	config->origin = memory_new(sizeof(struct config_origin));
	outcome = load(config, argc, argv, &fault);
	if (fault.fact != NULL)
	{
		fprintf(stderr, "inbox-puller: error: %s\n", fault.fact);
	}
	if (fault.remedy != NULL)
	{
		fprintf(stderr, "inbox-puller: hint: %s\n", fault.remedy);
	}
	fault_free(&fault);
	if (outcome != CONFIG_RUN)
	{
		config_free(config);
	}
	return outcome;
}

void
config_free(struct config *config)
{
	for (size_t i = 0; i < option_count; i++)
	{
		if (option_is_setting(&option_table[i]))
		{
			value_clear(&option_table[i], config);
		}
	}
	if (config->origin != NULL)
	{
		free(config->origin->flags.flag);
		free(config->origin->file);
		free(config->origin);
	}
	config->origin = NULL;
}

/* ---- logging ------------------------------------------------------------------------------ */

struct config_line
{
	struct log_field field[OPTION_MAX + 8];
	char name[OPTION_MAX][OPTION_NAME_SIZE];
	size_t count;
};

static void
add_field(struct config_line *line, const char *name, const char *text)
{
	line->field[line->count++] = (struct log_field){name, LOG_TEXT, {text}};
}

/* What --dbname says of the place and the user; the rest of it may be secret. */
static void
add_database(struct config_line *line, const PQconninfoOption *parts)
{
	static const char *const shown[][2] = {
		{"host", "db_host"}, {"port", "db_port"}, {"dbname", "db_name"}, {"user", "db_user"}};

	for (; parts != NULL && parts->keyword != NULL; parts++)
	{
		for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		{
			/* A value that looks like a connection string has a password in it by mistake. */
			if (strcmp(parts->keyword, shown[i][0]) == 0 && parts->val != NULL &&
				strpbrk(parts->val, "=@") == NULL)
			{
				add_field(line, shown[i][1], parts->val);
			}
		}
	}
}

void
config_log(const struct config *config)
{
	struct config_line line = {.count = 0};
	char *text[OPTION_MAX] = {NULL};
	PQconninfoOption *parts = NULL;

	for (size_t i = 0; i < option_count; i++)
	{
		const struct option_row *row = &option_table[i];

		if (option_is_setting(row) && !row->secret)
		{
			option_log_name(row, line.name[i]);
			text[i] = value_text(row, config);
			add_field(&line, line.name[i], text[i]);
		}
	}
	add_field(&line, "emulator", config->emulator ? "on" : "off");
	add_field(&line, "file", config->origin->file);
	if (config->dbname != NULL)
	{
		parts = config_parse_dbname(config->dbname);
		add_database(&line, parts);
	}
	log_fields(LOG_INFO, "config", line.field, line.count);
	PQconninfoFree(parts);
	for (size_t i = 0; i < option_count; i++)
	{
		free(text[i]);
	}
}

/* ---- reloading ---------------------------------------------------------------------------- */

/* Takes one option over if it may and has changed. Returns whether it did. */
static bool
take_over(const struct option_row *row, struct config *config, struct config *fresh)
{
	char *from = value_text(row, config);
	char *to = value_text(row, fresh);
	bool changed = from == NULL || to == NULL ? from != to : strcmp(from, to) != 0;
	char name[OPTION_NAME_SIZE];

	option_log_name(row, name);
	if (changed)
	{
		log_event(row->reloadable ? LOG_INFO : LOG_WARNING,
				  row->reloadable ? "config_changed" : "config_needs_restart", "option", LOG_TEXT,
				  name, "from", LOG_TEXT, row->secret ? NULL : from, "to", LOG_TEXT,
				  row->secret ? NULL : to, NULL);
	}
	if (changed && row->reloadable)
	{
		value_swap(row, config, fresh);
	}
	free(from);
	free(to);
	return changed && row->reloadable;
}

static void
take_over_all(struct config *config, struct config *fresh)
{
	int64_t changed = 0;

	for (size_t i = 0; i < option_count; i++)
	{
		if (option_is_setting(&option_table[i]))
		{
			changed += take_over(&option_table[i], config, fresh);
		}
	}
	log_configure(config->log_format, config->log_level);
	log_event(LOG_INFO, "config_reloaded", "changed", LOG_INT, changed, NULL);
}

void
config_reload(struct config *config)
{
	struct config fresh = {.origin = NULL};
	struct fault fault = {NULL, NULL};

	if (gather(&fresh, config->origin, &fault))
	{
		take_over_all(config, &fresh);
	}
	else
	{
		log_event(LOG_ERROR, "config_invalid", "err", LOG_TEXT, fault.fact, "hint", LOG_TEXT,
				  fault.remedy, "effect", LOG_TEXT, "nothing was changed", NULL);
	}
	fault_free(&fault);
	config_free(&fresh);
}
