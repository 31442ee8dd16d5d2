/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_SNAPSHOT_H
#define PUBSUB_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

struct json_object;
struct message;
struct service;
struct subscription;

/* What a subscription had not acknowledged at one moment, and all that was published later. */
struct snapshot
{
	struct service *service;
	char *name;
	char *topic;
	struct json_object *labels; /* NULL: none */
	int64_t expires;			/* moment */
	struct message **messages;	/* by id */
	size_t count;
	uint64_t last_message; /* the last one published when it was taken */
};

/* A new snapshot of that checked name, which is free. */
struct snapshot *snapshot_new(struct service *service, const char *name,
							  const struct subscription *subscription);
struct snapshot *snapshot_find(struct service *service, const char *name);

/* Sets the subscription to what the snapshot has unacknowledged. */
void snapshot_restore(const struct snapshot *snapshot, struct subscription *subscription);

/* Sets the subscription to have acknowledged just what was published before the moment. */
void snapshot_seek(struct subscription *subscription, int64_t moment);
struct json_object *snapshot_render(const struct snapshot *snapshot);
void snapshot_free(struct snapshot *snapshot);

#endif
