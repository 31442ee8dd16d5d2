/* SPDX-License-Identifier: PostgreSQL */
/*
 * One transaction on a connection in pipeline mode, as db.h describes it, and what its answer
 * means. The rule that carries the promise is here: committed is only what answered COMMIT with
 * the tag COMMIT, without a warning, on a connection that is idle and healthy afterwards.
 */
#ifndef INBOX_TRANSACTION_H
#define INBOX_TRANSACTION_H

#include "db.h"

/* Queues the whole pipeline; false when libpq refused (the connection is broken). */
bool transaction_send(struct db *db, const struct db_statement *statement)
	__attribute__((warn_unused_result));

/*
 * Reads what has arrived. True when the transaction is over, by its last Sync or by the loss of
 * the connection; "answer" is then filled, and valid until transaction_clear().
 */
bool transaction_read(struct db *db, struct db_answer *answer) __attribute__((warn_unused_result));

/* Forgets the last transaction's results. */
void transaction_clear(struct db *db);

/* Sees a notice of the server; a warning that comes with a COMMIT makes its outcome unknown. */
void transaction_notice(struct db *db, const PGresult *notice);

#endif
