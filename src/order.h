/* SPDX-License-Identifier: PostgreSQL */
/*
 * Ordering keys: a message that failed holds up those after it.
 */
#ifndef INBOX_ORDER_H
#define INBOX_ORDER_H

#include "postgres.h"

#include "claim.h"
#include "home.h"
#include "source.h"

/*
 * Decides open messages behind one that is being retried: INBOX_LATER. Those behind a dead or
 * parked one stay open with "parks" set: their keys are to be claimed, their handlers not run.
 */
extern void inbox_order_hold(const inbox_home *home, const inbox_source *source,
							 inbox_claims *claims);

/*
 * After the open keys were claimed: where another transaction had one of them, its message may have
 * died there since inbox_order_hold, and those behind it must not be applied. Their "parks" is set.
 */
extern void inbox_order_park(const inbox_home *home, inbox_source *source, inbox_claims *claims);

#endif
