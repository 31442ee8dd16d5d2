/* SPDX-License-Identifier: PostgreSQL */
/*
 * Loads a configuration in a test, and keeps what was said about it.
 */
#ifndef INBOX_TEST_LOAD_H
#define INBOX_TEST_LOAD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "config.h"

#define SUBSCRIPTION "projects/acme/subscriptions/orders"

struct loaded
{
	struct config config;
	enum config_outcome outcome;
	char *out;		/* of stdout */
	char *err;		/* of stderr */
	char *argv[64]; /* the configuration points into it */
};

/* Takes away every variable that could reach the options. */
static inline void
load_clean_environment(void)
{
	char name[256];

	for (char **variable = environ; *variable != NULL;)
	{
		snprintf(name, sizeof(name), "%.*s", (int) strcspn(*variable, "="), *variable);
		if (strncmp(name, "INBOX_", 6) == 0 || strcmp(name, "PUBSUB_EMULATOR_HOST") == 0 ||
			strncmp(name, "GOOGLE_", 7) == 0)
		{
			unsetenv(name);
			variable = environ;
		}
		else
		{
			variable++;
		}
	}
	/* There are no credentials on this machine. */
	setenv("CLOUDSDK_CONFIG", "/nonexistent", 1);
	setenv("NO_GCE_CHECK", "true", 1);
}

/* Loads with the given arguments, ended by NULL. */
static inline void
load(struct loaded *loaded, const char *const *arguments)
{
	static char program[] = "inbox-puller";
	int argc = 1;
	struct capture out = capture_start(STDOUT_FILENO);
	struct capture err = capture_start(STDERR_FILENO);

	loaded->argv[0] = program;
	for (; *arguments != NULL; arguments++)
	{
		loaded->argv[argc++] = strdup(*arguments);
	}
	loaded->argv[argc] = NULL;
	loaded->outcome = config_load(&loaded->config, argc, loaded->argv);
	loaded->err = capture_end(&err);
	loaded->out = capture_end(&out);
}

#define LOAD(loaded, ...) load((loaded), (const char *const[]){__VA_ARGS__, NULL})

/* With everything that is required, against an emulator. */
#define LOAD_GOOD(loaded, ...)                            \
	(setenv("PUBSUB_EMULATOR_HOST", "localhost:8085", 1), \
	 LOAD((loaded), "--subscription", SUBSCRIPTION, "--handler", "f", ##__VA_ARGS__))

static inline void
unload(struct loaded *loaded)
{
	if (loaded->outcome == CONFIG_RUN)
	{
		config_free(&loaded->config);
	}
	for (char **argument = loaded->argv + 1; *argument != NULL; argument++)
	{
		free(*argument);
	}
	free(loaded->out);
	free(loaded->err);
}

/* A file with this text; its name is put into "path". */
static inline void
write_file(char path[64], const char *text, size_t size)
{
	int file;

	snprintf(path, 64, "/tmp/inbox-test-XXXXXX");
	file = mkstemp(path);
	if (file < 0 || write(file, text, size) != (ssize_t) size || close(file) != 0)
	{
		abort();
	}
}

#endif
