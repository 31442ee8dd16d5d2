/* SPDX-License-Identifier: PostgreSQL */
/*
 * Handlers: checked once, then run with what is theirs and nothing of ours.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "handler.h"

#define UNUSABLE MAKE_SQLSTATE('I', 'X', '0', '0', '3')

static void
refuse(Oid function, const char *cause)
{
	ereport(ERROR,
			(errcode(UNUSABLE),
			 errmsg("%s cannot be a handler", format_procedure_qualified(function)),
			 errdetail("%s", cause),
			 errhint("A handler is a plain function that takes (payload), (key text, payload) or "
					 "(inbox_message), where payload is jsonb, json, text or bytea.")));
}

void
inbox_handler_refuse_null(void)
{
	ereport(ERROR, (errcode(UNUSABLE), errmsg("the handler is NULL"),
					errhint("Use inbox_accept to claim a key without a handler.")));
}

static void
check_kind(Oid function, Form_pg_proc proc)
{
#ifndef INBOX_WITHOUT_HANDLER_KIND
	if (proc->prokind == PROKIND_PROCEDURE)
		refuse(function, "It is a procedure, which could commit half of its work.");
	if (proc->prokind != PROKIND_FUNCTION)
		refuse(function, "It is an aggregate or a window function.");
#endif
	if (proc->proretset)
		refuse(function, "It returns a set.");
#ifndef INBOX_WITHOUT_HANDLER_TEMP
	if (isAnyTempNamespace(proc->pronamespace))
		refuse(function, "It lives in a temporary schema, where anyone may put a function.");
#endif
}

static void
read_signature(const inbox_home *home, Oid function, Form_pg_proc proc, inbox_handler *handler)
{
	const Oid *types = proc->proargtypes.values;

	if (proc->pronargs == 1 && types[0] == home->message)
		handler->form = INBOX_FORM_MESSAGE;
	else if (proc->pronargs == 1 && inbox_payload_type(types[0]))
		handler->form = INBOX_FORM_PAYLOAD;
	else if (proc->pronargs == 2 && types[0] == TEXTOID && inbox_payload_type(types[1]))
		handler->form = INBOX_FORM_KEY_PAYLOAD;
	else
		refuse(function, "Its arguments are other ones.");
	handler->payload_type = types[proc->pronargs - 1];
	handler->returns_jsonb = proc->prorettype == JSONBOID;
}

/* Calling a function by its OID checks no right, so it has to be done here. */
static void
check_right(Oid function)
{
#ifndef INBOX_WITHOUT_EXECUTE_CHECK
	if (inbox_proc_aclcheck(function, GetUserId()) == ACLCHECK_OK)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for handler %s", format_procedure_qualified(function)),
			 errhint("GRANT EXECUTE ON FUNCTION %s TO %s;", format_procedure_qualified(function),
					 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
#endif
}

void
inbox_handler_open(const inbox_home *home, Oid function, inbox_handler *handler)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc proc;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
						errmsg("the handler, a function with OID %u, does not exist", function),
						errhint("Name the handler by its name or signature.")));
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	check_kind(function, proc);
	read_signature(home, function, proc, handler);
	ReleaseSysCache(tuple);
	check_right(function);
	InvokeFunctionExecuteHook(function);
	fmgr_info(function, &handler->call);
}

/* ---- running it ------------------------------------------------------------------------- */

static void
refuse_null(const inbox_handler *handler)
{
	ereport(
		ERROR,
		(errcode(UNUSABLE),
		 errmsg("%s is strict and would not run for this message",
				format_procedure_qualified(handler->call.fn_oid)),
		 errdetail("The message has no payload, and a strict function is not called with a NULL "
				   "argument: the message would be lost."),
		 errhint("ALTER FUNCTION %s CALLED ON NULL INPUT;",
				 format_procedure_qualified(handler->call.fn_oid))));
}

static void
set_arguments(FunctionCallInfo fcinfo, const inbox_home *home, const inbox_handler *handler,
			  const inbox_message *message, const inbox_source *source)
{
	NullableDatum *payload = &fcinfo->args[fcinfo->nargs - 1];

	if (handler->form == INBOX_FORM_KEY_PAYLOAD)
		fcinfo->args[0] = (NullableDatum){.value = PointerGetDatum(message->key)};
	if (handler->form == INBOX_FORM_MESSAGE)
		*payload = (NullableDatum){.value = inbox_message_row(home, message, source)};
	else if (!message->payload.isnull)
		*payload = (NullableDatum){
			.value = inbox_payload_convert(&message->payload, handler->payload_type)};
	else
	{
#ifndef INBOX_WITHOUT_STRICT_CHECK
		if (handler->call.fn_strict)
			refuse_null(handler);
#endif
		*payload = (NullableDatum){.isnull = true};
	}
}

/* A function leaves SET, SET LOCAL and SET ROLE behind; the next message must not see them. */
static Datum
run_contained(FunctionCallInfo fcinfo)
{
	Oid role;
	int context;
	int nest;
	Datum result;

	GetUserIdAndSecContext(&role, &context);
	nest = NewGUCNestLevel();
	result = FunctionCallInvoke(fcinfo);
#ifndef INBOX_WITHOUT_SETTINGS_UNDONE
	AtEOXact_GUC(false, nest);
	SetUserIdAndSecContext(role, context);
#else
	AtEOXact_GUC(true, nest);
#endif
	return result;
}

Datum
inbox_handler_run(const inbox_home *home, inbox_handler *handler, const inbox_message *message,
				  const inbox_source *source, bool *isnull)
{
	LOCAL_FCINFO(fcinfo, 2);
	PgStat_FunctionCallUsage usage;
	Datum result;

	/* Without a collation a handler could not compare the strings it is given. */
	InitFunctionCallInfoData(*fcinfo, &handler->call, handler->call.fn_nargs, DEFAULT_COLLATION_OID,
							 NULL, NULL);
	set_arguments(fcinfo, home, handler, message, source);
	pgstat_init_function_usage(fcinfo, &usage);
	result = run_contained(fcinfo);
	pgstat_end_function_usage(&usage, true);
	*isnull = fcinfo->isnull || !handler->returns_jsonb;
	return result;
}

Oid
inbox_handler_find(const char *name)
{
	PGFunction resolve = strchr(name, '(') != NULL ? regprocedurein : regprocin;

	return DatumGetObjectId(DirectFunctionCall1(resolve, CStringGetDatum(name)));
}

PG_FUNCTION_INFO_V1(inbox_handler_signature);

Datum
inbox_handler_signature(PG_FUNCTION_ARGS)
{
	inbox_handler handler;
	Oid function;

	if (PG_ARGISNULL(0))
		inbox_handler_refuse_null();
	function = inbox_handler_find(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	inbox_handler_open(inbox_home_find(fcinfo), function, &handler);
	PG_RETURN_TEXT_P(cstring_to_text(format_procedure_qualified(function)));
}
