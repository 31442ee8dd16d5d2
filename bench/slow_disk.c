/* SPDX-License-Identifier: PostgreSQL */
/*
 * For LD_PRELOAD: a disk that takes DISK_MS milliseconds longer to confirm what was written, as a
 * disk in the network or a synchronous standby does.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int
fdatasync(int file)
{
	int (*real)(int) = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
	const char *text = getenv("DISK_MS");
	double ms = text != NULL ? strtod(text, NULL) : 0;
	struct timespec delay = {.tv_sec = (time_t) (ms / 1000)};
	int result = real(file);

	delay.tv_nsec = (long) ((ms / 1000 - (double) delay.tv_sec) * 1e9);
	while (nanosleep(&delay, &delay) != 0)
	{
	}
	return result;
}
