/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_TOPIC_H
#define PUBSUB_TOPIC_H

#include <stddef.h>
#include <stdint.h>

#include "list.h"

struct json_object;
struct message;
struct service;

struct topic
{
	struct service *service;
	char *name;
	struct json_object *labels; /* NULL: none */
	int64_t retention;			/* nanoseconds; 0: published messages are not kept */
	struct link subscriptions;
	/* What is kept for subscriptions that seek, oldest first; empty without retention. */
	struct message **kept;
	size_t kept_first;
	size_t kept_end;
	size_t kept_room;
};

/* A new topic of that checked name, which is free. */
struct topic *topic_new(struct service *service, const char *name);
struct topic *topic_find(struct service *service, const char *name);

/* Hands the message to every subscription; the caller's reference stays his. */
void topic_deliver(struct topic *topic, struct message *message);

/* Lets go of what was kept beyond the retention. */
void topic_trim(struct topic *topic, int64_t now);

/* Its subscriptions stay, with what they hold. */
void topic_free(struct topic *topic);

#endif
