/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_SUBSCRIPTION_H
#define PUBSUB_SUBSCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry.h"
#include "list.h"
#include "settings.h"

struct filter;
struct json_object;
struct lh_table;
struct message;
struct service;
struct snapshot;
struct topic;

/*
 * A subscription and what it holds. Entries have consecutive positions in the order of
 * publication; the array is a window on them, with NULL where an entry is gone.
 */
struct subscription
{
	struct service *service;
	char *name;
	uint64_t number;	 /* never used again, so that ack ids of a namesake do not fit */
	struct topic *topic; /* NULL: deleted */
	struct link in_topic;
	struct settings settings;
	struct filter *filter; /* NULL: everything passes */
	bool detached;
	struct entry **entries;
	size_t window_first; /* index of the first entry in use, and one beyond the last */
	size_t window_end;
	size_t window_room;
	uint64_t first_position; /* the position of entries[window_first] */
	struct link ready;		 /* entries to deliver next, in this order */
	struct link waiting;	 /* pulls that found nothing, oldest first */
	struct link hungry;
	struct lh_table *orders; /* by ordering key */
	size_t count[ENTRY_STATES];
};

/*
 * A new subscription of that checked name, which is free. Takes over what the settings own; the
 * topic they name exists.
 */
struct subscription *subscription_new(struct service *service, const char *name,
									  struct settings *settings);
struct subscription *subscription_find(struct service *service, const char *name);

/* Replaces the settings; takes over what the new ones own. */
void subscription_change(struct subscription *subscription, struct settings *settings);

/* Takes a message in, unless the filter keeps it out. */
void subscription_accept(struct subscription *subscription, struct message *message);
void subscription_lose_topic(struct subscription *subscription);

/* The entry at that position, or NULL if there is none any more. */
struct entry *subscription_entry(struct subscription *subscription, uint64_t position);

/* Adds an entry at the end, in state acked: the caller sets what it is to be. */
struct entry *subscription_append(struct subscription *subscription, struct message *message);

/* Makes an acknowledged entry, or a new one, deliverable in its turn. */
void subscription_restore(struct entry *entry);

/* Drops everything; ack ids given out for it do not fit what comes later. */
void subscription_clear(struct subscription *subscription);

/* Removes the entry for good. */
void subscription_drop(struct entry *entry);

/* Whether acknowledged messages are kept for a later seek. */
bool subscription_retains(const struct subscription *subscription);

/* Drops what is older than the retention, delivered or not. */
void subscription_trim(struct subscription *subscription, int64_t now);

/* Something became ready: serve those who wait, before the next wait for events. */
void subscription_wake(struct subscription *subscription);

struct json_object *subscription_render(struct subscription *subscription);

/* Pulls that wait on it have to be ended before, or go on waiting until their time is up. */
void subscription_free(struct subscription *subscription);

#endif
