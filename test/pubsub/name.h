/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_NAME_H
#define PUBSUB_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct problem;

#define NAME_DELETED_TOPIC "_deleted-topic_"

/* The kinds of resources, by the collection they live in. */
enum kind
{
	KIND_TOPIC,
	KIND_SUBSCRIPTION,
	KIND_SNAPSHOT
};

const char *name_collection(enum kind kind);

/* Whether the text is projects/PROJECT/COLLECTION/ID of that kind, by the service's rules. */
bool name_check(const char *name, enum kind kind, struct problem *problem);

/* The ID, and the length of PROJECT, of a checked name. PROJECT starts at byte 9. */
const char *name_id(const char *name);
size_t name_project_len(const char *name);

#endif
