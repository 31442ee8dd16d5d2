/* SPDX-License-Identifier: PostgreSQL */
/*
 * Pulls: how many are in flight, for how many messages, and what their answers bring.
 *
 * What is returned is leased to us from that moment, so no more is asked for than can be started
 * now plus one batch ahead, in messages and in bytes. A pull is never given up while it waits:
 * the service would still hand messages to it.
 */
#ifndef INBOX_PULL_H
#define INBOX_PULL_H

#include "puller.h"

void pull_init(struct puller *puller);

/* Starts what there is credit for. */
void pull_step(struct puller *puller, int64_t now);

int64_t pull_deadline(const struct puller *puller);

#endif
