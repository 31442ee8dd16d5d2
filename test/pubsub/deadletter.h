/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_DEADLETTER_H
#define PUBSUB_DEADLETTER_H

#include <stdbool.h>

struct entry;

/*
 * Publishes the entry's message to the dead-letter topic of its subscription, with the attributes
 * that tell where it comes from. False if that topic does not exist: then the message is delivered
 * on and on, as the real service does.
 */
bool deadletter_forward(struct entry *entry);

#endif
