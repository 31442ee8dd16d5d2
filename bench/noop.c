/* SPDX-License-Identifier: PostgreSQL */
/*
 * A handler that does nothing, in C: what a batch costs with it is the cost of inbox alone.
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(bench_noop);

Datum
bench_noop(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_VOID();
}
