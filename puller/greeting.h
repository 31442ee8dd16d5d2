/* SPDX-License-Identifier: PostgreSQL */
/*
 * The first words on a new connection: which server, which extension, which versions, and
 * inbox_serve(), which checks the source, the handler and the right to run it.
 */
#ifndef INBOX_GREETING_H
#define INBOX_GREETING_H

#include "db.h"

enum greeting_outcome
{
	GREETING_GOES_ON, /* wait for more data */
	GREETING_DONE,	  /* the facts are known, the connection is in pipeline mode */
	GREETING_FAILED	  /* logged; "refusal" says of which kind */
};

/* Sends the first question; false when the connection is broken. */
bool greeting_start(struct db *db) __attribute__((warn_unused_result));

enum greeting_outcome greeting_read(struct db *db, enum db_refusal *refusal);

/* The remedy for an error that comes without one, to be freed, or NULL. */
char *greeting_hint(const PGconn *connection, const char *sqlstate);

void greeting_free_facts(struct db_facts *facts);

#endif
