/* SPDX-License-Identifier: PostgreSQL */
/*
 * Memory runs out at every place while the configuration is read, logged and read again: what is
 * taken is all of it, or nothing.
 */
#include "exhaust.h"

#include "config.h"

static volatile bool configures;

/* Whether it holds what is at the very end of test/corpus/config/all.ini. */
static bool
is_whole(const struct config *config)
{
	return config->halt_after == 7 && config->keys.count == 3;
}

static int
configure(const void *path)
{
	static char program[] = "inbox-puller";
	static char flag[] = "--config";
	char *argv[] = {program, flag, (char *) path, NULL};
	long before = live;
	struct config config;

	configures = true;
	if (config_load(&config, 3, argv) == CONFIG_RUN)
	{
		bool whole = is_whole(&config);

		config_log(&config);
		config_reload(&config);
		whole &= is_whole(&config);
		config_free(&config);
		if (!whole)
		{
			printf("a part of the file was taken for all of it\n");
			return 1;
		}
	}
	configures = false;
	/* What was refused was refused with a message, and ends the process. */
	if (live > before)
	{
		printf("%ld blocks are not freed\n", live - before);
		return 1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	unsetenv("PUBSUB_EMULATOR_HOST");
	armed = &configures;
	return argc == 2 && exhaust(argv[1], configure, argv[1]) ? 0 : 1;
}
