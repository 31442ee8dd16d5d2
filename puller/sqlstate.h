/* SPDX-License-Identifier: PostgreSQL */
/*
 * What an SQLSTATE says about a failed transaction: whose fault it is, and so what comes next.
 */
#ifndef INBOX_SQLSTATE_H
#define INBOX_SQLSTATE_H

enum sqlstate_class
{
	SQLSTATE_MESSAGE,	 /* the message's own fault when it was alone */
	SQLSTATE_TRANSIENT,	 /* nobody's: the same again after a pause */
	SQLSTATE_CONTENTION, /* a deadlock or a row lock that was not to be had in time */
	SQLSTATE_TIMEOUT,	 /* 57014: too slow, or too many at once */
	SQLSTATE_INTERNAL,	 /* XX: counted like a message's fault, but against a longer limit */
	SQLSTATE_DEPLOYMENT	 /* 42, 3F, IX003: ours if our own call raised it, else the handler's */
};

/* "sqlstate" is five characters, or NULL when the server sent none (a lost connection). */
enum sqlstate_class sqlstate_classify(const char *sqlstate);

#endif
