/* SPDX-License-Identifier: PostgreSQL */
#include "version.h"

#include <string.h>

bool
version_fits(const char *other)
{
	size_t size = (size_t) (strrchr(INBOX_VERSION, '.') - INBOX_VERSION) + 1;

	return other != NULL && strncmp(other, INBOX_VERSION, size) == 0;
}

const char *
version_remedy(const struct db_facts *facts)
{
	if (facts->managed)
	{
		return "run inbox-managed.sql of the version of inbox-puller";
	}
	return facts->version != NULL && strcmp(facts->version, facts->library) != 0
			   ? "run: ALTER EXTENSION inbox UPDATE"
			   : "install the same version of inbox-puller and of the extension";
}
