/* SPDX-License-Identifier: PostgreSQL */
/*
 * The user's function.
 */
#ifndef INBOX_HANDLER_H
#define INBOX_HANDLER_H

#include "postgres.h"

#include "fmgr.h"

#include "home.h"
#include "message.h"
#include "source.h"

typedef enum inbox_form
{
	INBOX_FORM_PAYLOAD,		/* f(payload) */
	INBOX_FORM_KEY_PAYLOAD, /* f(key text, payload) */
	INBOX_FORM_MESSAGE		/* f(inbox_message) */
} inbox_form;

typedef struct inbox_handler
{
	FmgrInfo call; /* kept over a batch, so that the language looks the function up once */
	inbox_form form;
	Oid payload_type;
	bool returns_jsonb;
} inbox_handler;

/*
 * Checks that the function can be a handler (IX003) and that the caller may execute it (42501).
 * The handler lives in the current memory context.
 */
extern void inbox_handler_open(const inbox_home *home, Oid function, inbox_handler *handler);

/* IX003, for a caller who gave NULL. */
extern void inbox_handler_refuse_null(void);

/* The function that a name or a signature means; PostgreSQL's own errors where there is none. */
extern Oid inbox_handler_find(const char *name);

/*
 * Runs it as the caller; settings and role it leaves behind are undone. What it returns lives in
 * the current memory context. Sets *isnull too where it does not return jsonb.
 */
extern Datum inbox_handler_run(const inbox_home *home, inbox_handler *handler,
							   const inbox_message *message, const inbox_source *source,
							   bool *isnull);

#endif
