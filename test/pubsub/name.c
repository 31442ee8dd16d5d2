/* SPDX-License-Identifier: PostgreSQL */
#include <ctype.h>
#include <string.h>

#include "name.h"
#include "problem.h"

#define PREFIX "projects/"

const char *
name_collection(enum kind kind)
{
	static const char *const names[] = {"topics", "subscriptions", "snapshots"};

	return names[kind];
}

static bool
good_id(const char *id)
{
	size_t len = strlen(id);

	return len >= 3 && len <= 255 && isalpha((unsigned char) id[0]) &&
		   strncmp(id, "goog", 4) != 0 &&
		   strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~+%") ==
			   len;
}

bool
name_check(const char *name, enum kind kind, struct problem *problem)
{
	const char *collection = name_collection(kind);
	size_t len = strlen(collection);
	const char *rest =
		strncmp(name, PREFIX, strlen(PREFIX)) == 0 ? strchr(name + strlen(PREFIX), '/') : NULL;

	if (rest != NULL && rest > name + strlen(PREFIX) && strncmp(rest + 1, collection, len) == 0 &&
		rest[1 + len] == '/' && good_id(rest + len + 2))
		return true;
	return problem_set(problem, STATUS_INVALID_ARGUMENT,
					   "Invalid resource name given (name=%.300s). It has to be "
					   "projects/PROJECT/%s/ID, where ID has 3 to 255 letters, digits and -_.~+%%, "
					   "starts with a letter and not with \"goog\".",
					   name, collection);
}

const char *
name_id(const char *name)
{
	return strrchr(name, '/') + 1;
}

size_t
name_project_len(const char *name)
{
	return (size_t) (strchr(name + strlen(PREFIX), '/') - (name + strlen(PREFIX)));
}
