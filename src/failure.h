/* SPDX-License-Identifier: PostgreSQL */
/*
 * The rows of messages that were not applied.
 */
#ifndef INBOX_FAILURE_H
#define INBOX_FAILURE_H

#include "postgres.h"

#include "claim.h"
#include "home.h"
#include "message.h"
#include "source.h"

/* Decides the open messages that are older than the memory of keys: INBOX_EXPIRED. */
extern void inbox_failure_expire(const inbox_source *source, inbox_claims *claims);

/* Keeps the messages with the verdicts INBOX_CONFLICT, INBOX_PARKED and INBOX_EXPIRED. */
extern void inbox_failure_keep(const inbox_home *home, const inbox_source *source,
							   const inbox_message *messages, int count);

/* Removes the "retrying" rows of the messages that are applied now, or were already. */
extern void inbox_failure_forget(const inbox_home *home, const inbox_source *source,
								 const inbox_message *messages, int count);

#endif
