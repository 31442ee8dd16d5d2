/* SPDX-License-Identifier: PostgreSQL */
#include "sqlstate.h"

#include <stddef.h>
#include <string.h>

/* The longest prefix that fits decides; what fits none is the message's fault. */
static const struct
{
	const char *prefix;
	enum sqlstate_class class;
} rules[] = {
#ifndef INBOX_WITHOUT_BLAME
	{"40P01", SQLSTATE_CONTENTION}, /* deadlock_detected */
#else
	{"40P01", SQLSTATE_MESSAGE},
#endif
	{"55P03", SQLSTATE_CONTENTION}, /* lock_not_available */
	{"57014", SQLSTATE_TIMEOUT},	/* query_canceled: statement_timeout */
	{"57P0", SQLSTATE_TRANSIENT},	/* shutdowns, and idle timeouts */
	{"08", SQLSTATE_TRANSIENT},		/* connection exceptions */
	{"25", SQLSTATE_TRANSIENT},		/* read-only after a failover, timeouts in transaction */
	{"26", SQLSTATE_TRANSIENT},		/* a pooler switched the server under a statement */
	{"28", SQLSTATE_TRANSIENT},		/* authorization of the connection */
	{"3D", SQLSTATE_TRANSIENT},		/* the database is not there */
	{"40", SQLSTATE_TRANSIENT},		/* serialization failures */
	{"53", SQLSTATE_TRANSIENT},		/* disk full, out of memory, too many connections */
	{"58", SQLSTATE_TRANSIENT},		/* I/O errors */
	{"XX", SQLSTATE_INTERNAL},		/* internal errors */
	{"42", SQLSTATE_DEPLOYMENT},	/* missing or forbidden objects */
	{"3F", SQLSTATE_DEPLOYMENT},	/* a schema is missing */
	{"IX003", SQLSTATE_DEPLOYMENT}, /* not usable as a handler any more */
};

enum sqlstate_class
sqlstate_classify(const char *sqlstate)
{
	if (sqlstate == NULL)
	{
		return SQLSTATE_TRANSIENT;
	}
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
	{
		if (strncmp(sqlstate, rules[i].prefix, strlen(rules[i].prefix)) == 0)
		{
			return rules[i].class;
		}
	}
	return SQLSTATE_MESSAGE;
}
