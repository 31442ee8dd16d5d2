/* SPDX-License-Identifier: PostgreSQL */
/*
 * The library: what happens when it is loaded, and what version it is.
 */
#include "compat.h"

#include "utils/builtins.h"
#include "utils/guc.h"

#include "promise.h"

PG_MODULE_MAGIC_EXT(.name = "inbox", .version = INBOX_VERSION);

void _PG_init(void);

void
_PG_init(void)
{
	inbox_promise_init();
	MarkGUCPrefixReserved("inbox");
}

PG_FUNCTION_INFO_V1(inbox_version);

Datum
inbox_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(INBOX_VERSION));
}
