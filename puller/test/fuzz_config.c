/* SPDX-License-Identifier: PostgreSQL */
/*
 * The configuration file under libFuzzer (make fuzz): whatever is in it, it is taken or refused with
 * a message, when the puller starts and when it reads the file again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
put(int file, const uint8_t *bytes, size_t size)
{
	if (ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t) size)
	{
		abort();
	}
}

/* All of it when it starts, the first half when it is read again. */
int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static int file = -1;
	static char path[64];
	static char program[] = "inbox-puller";
	static char flag[] = "--config";
	char *argv[] = {program, flag, path, NULL};
	struct config config;

	if (file < 0)
	{
		file = memfd_create("config", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
		unsetenv("PUBSUB_EMULATOR_HOST");
	}
	put(file, bytes, size);
	if (config_load(&config, 3, argv) == CONFIG_RUN)
	{
		config_log(&config);
		put(file, bytes, size / 2);
		config_reload(&config);
		config_free(&config);
	}
	return 0;
}
