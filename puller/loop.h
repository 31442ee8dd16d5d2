/* SPDX-License-Identifier: PostgreSQL */
/*
 * The loop: one wait for everything, then every part once, in a fixed order. Nothing in a turn
 * waits for anything.
 */
#ifndef INBOX_LOOP_H
#define INBOX_LOOP_H

#include "puller.h"

/* Blocks the signals the loop takes by signalfd; before the first thread is made. */
void loop_block_signals(void);

/* Runs until the puller is done; returns the exit status. */
int loop_run(struct puller *puller);

#endif
