/* SPDX-License-Identifier: PostgreSQL */
/*
 * Where the extension lives, and the statements it runs on its own tables.
 */
#ifndef INBOX_HOME_H
#define INBOX_HOME_H

#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"

typedef struct inbox_home
{
	char schema[NAMEDATALEN * 2 + 3]; /* as an identifier in SQL */
	Oid namespace;
	Oid claim; /* the tables */
	Oid source;
	Oid failure;
	Oid result;
	Oid message;  /* the type inbox_message */
	Oid owner;	  /* of inbox_claim: our own statements run as this role */
	uint64 epoch; /* changes when any of the above does, except the owner */
} inbox_home;

/*
 * A statement on our own tables. In its text "%1$s" stands for the schema, among its types
 * InvalidOid for inbox_message.
 */
typedef struct inbox_statement
{
	const char *text;
	int nargs;
	const Oid *types;
	SPIPlanPtr plan;
	uint64 epoch;
} inbox_statement;

/*
 * Looked up at each call, because the schema may be renamed, or the extension dropped and created
 * elsewhere, under a running backend. The result is static and lives until the next call.
 */
extern const inbox_home *inbox_home_find(FunctionCallInfo fcinfo);

/*
 * Between begin and end the caller is in an SPI connection and acts as the owner of our tables; an
 * error leaves both. Nothing of the user's may run in between. inbox_home_run returns the number
 * of rows; they are in SPI_tuptable.
 */
typedef struct inbox_caller
{
	Oid role;
	int context;
} inbox_caller;

extern inbox_caller inbox_home_begin(const inbox_home *home);
extern uint64 inbox_home_run(const inbox_home *home, inbox_statement *statement, Datum *values,
							 const char *nulls);
extern void inbox_home_end(inbox_caller caller);

#endif
