/* SPDX-License-Identifier: PostgreSQL */
/*
 * For the script of an update: what GRANT does in it becomes a part of the extension, which
 * pg_dump leaves out, and a restored puller would have no rights.
 */
#include "compat.h"

#include "commands/extension.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(inbox_outside_script);

Datum
inbox_outside_script(PG_FUNCTION_ARGS)
{
	char *command = text_to_cstring(PG_GETARG_TEXT_PP(0));
	bool in_script = creating_extension;

	SPI_connect();
	PG_TRY();
	{
		creating_extension = false;
		SPI_execute(command, false, 0);
	}
	PG_FINALLY();
	{
		creating_extension = in_script;
	}
	PG_END_TRY();
	SPI_finish();
	PG_RETURN_VOID();
}
