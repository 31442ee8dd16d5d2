/* SPDX-License-Identifier: PostgreSQL */
/* Rows as PostgreSQL answers them in binary format. */
#ifndef INBOX_TEST_ROWS_H
#define INBOX_TEST_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <endian.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* Rows of that many columns in binary format; free with PQclear(). */
static inline PGresult *
new_rows(int columns)
{
	PGresult *rows = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	static char name[] = "column";
	PGresAttDesc attributes[3];

	for (int i = 0; i < columns; i++)
	{
		attributes[i] = (PGresAttDesc){.name = name, .format = 1};
	}
	assert_int_equal(PQsetResultAttrs(rows, columns, attributes), 1);
	return rows;
}

static inline void
set_bytes(PGresult *rows, int row, int column, void *bytes, int size)
{
	assert_int_equal(PQsetvalue(rows, row, column, bytes, size), 1);
}

static inline void
set_int(PGresult *rows, int row, int column, int value)
{
	uint32_t wire = htonl((uint32_t) value);

	set_bytes(rows, row, column, &wire, sizeof(wire));
}

static inline void
set_double(PGresult *rows, int row, int column, double value)
{
	uint64_t wire;

	memcpy(&wire, &value, sizeof(wire));
	wire = htobe64(wire);
	set_bytes(rows, row, column, &wire, sizeof(wire));
}

static inline void
set_text(PGresult *rows, int row, int column, const char *text)
{
	char *copy = memory_copy_text(text);

	set_bytes(rows, row, column, copy, (int) strlen(copy));
	free(copy);
}

#endif
