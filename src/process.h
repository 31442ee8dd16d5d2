/* SPDX-License-Identifier: PostgreSQL */
/*
 * What every call does, from its messages to their verdicts.
 */
#ifndef INBOX_PROCESS_H
#define INBOX_PROCESS_H

#include "postgres.h"

#include "handler.h"
#include "home.h"
#include "message.h"
#include "source.h"

typedef struct inbox_call
{
	const inbox_home *home;
	inbox_source source;
	inbox_handler *handler; /* NULL: the caller does the work itself */
	inbox_message *messages;
	int count;
} inbox_call;

/*
 * Claims the keys, runs the handler for the new ones in the order given, and sets the verdicts.
 * "single" says that a conflict is the caller's error (IX001) instead of a verdict.
 */
extern void inbox_call_run(inbox_call *call, bool single);

/* Runs the handler for the messages with the verdict INBOX_APPLIED, and keeps what it returns. */
extern void inbox_call_apply(const inbox_call *call);

#endif
