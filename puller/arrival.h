/* SPDX-License-Identifier: PostgreSQL */
/* A message that a pull has brought: its lease, and its place among those that wait. */
#ifndef INBOX_ARRIVAL_H
#define INBOX_ARRIVAL_H

#include "puller.h"

/* Takes a decoded message over; "lease_start" is the first byte of the response it came in. */
void arrival_hold(struct puller *puller, struct message *message, int64_t lease_start);

#endif
