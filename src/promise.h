/* SPDX-License-Identifier: PostgreSQL */
/*
 * What makes a verdict safe to act on once COMMIT has answered.
 */
#ifndef INBOX_PROMISE_H
#define INBOX_PROMISE_H

#include "postgres.h"

extern void inbox_promise_init(void);

/*
 * To be called for every verdict a transaction gives. "already" is true where the verdict rests on
 * a row that another transaction wrote: then this COMMIT has to prove that that row is durable.
 */
extern void inbox_promise(bool already);

#endif
