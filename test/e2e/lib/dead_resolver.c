/* SPDX-License-Identifier: PostgreSQL */
/*
 * A resolver that can die: preloaded, it answers every name that ends in ".test" with 127.0.0.1,
 * and while the file named by DEAD_RESOLVER exists it does not answer at all.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int (*resolve)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
			struct addrinfo **result)
{
	resolve real = (resolve) dlsym(RTLD_NEXT, "getaddrinfo");
	size_t size = name != NULL ? strlen(name) : 0;

	if (size < 5 || strcmp(name + size - 5, ".test") != 0)
	{
		return real(name, service, hints, result);
	}
	while (access(getenv("DEAD_RESOLVER"), F_OK) == 0)
	{
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	}
	return real("127.0.0.1", service, hints, result);
}
