/* SPDX-License-Identifier: PostgreSQL */
/*
 * The way to an orderly end: no more pulls, what is in a transaction ends and is acknowledged, the
 * rest is given back.
 */
#ifndef INBOX_STOP_H
#define INBOX_STOP_H

#include "puller.h"

void stop_begin(struct puller *puller);

/* Ends the loop when nothing is left to wait for, or when --grace is over. */
void stop_step(struct puller *puller, int64_t now);

/* When stop_step() has something to do though nothing happens. */
int64_t stop_deadline(const struct puller *puller, int64_t now);

#endif
