/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>

#include "lookup.h"

struct lookup *
lookup_new(struct service *service, const struct lookup_options *options)
{
	(void) service;
	(void) options;
	return NULL;
}

void
lookup_free(struct lookup *lookup)
{
	free(lookup);
}

void
lookup_add(struct lookup *lookup, const struct subscription *subscription,
		   const struct message *message)
{
	(void) lookup;
	(void) subscription;
	(void) message;
}

void
lookup_settle(struct lookup *lookup)
{
	(void) lookup;
}

size_t
lookup_descriptors(struct lookup *lookup, struct pollfd *descriptors)
{
	(void) lookup;
	(void) descriptors;
	return 0;
}

void
lookup_run(struct lookup *lookup)
{
	(void) lookup;
}

struct json_object *
lookup_render(const struct lookup *lookup)
{
	(void) lookup;
	return NULL;
}
