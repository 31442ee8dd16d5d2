/* SPDX-License-Identifier: PostgreSQL */
/*
 * Names that differ between PostgreSQL 15 and 18, in one place.
 */
#ifndef INBOX_COMPAT_H
#define INBOX_COMPAT_H

#include "postgres.h"

#include "access/genam.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "replication/message.h"
#include "utils/acl.h"
#include "utils/relcache.h"

#if PG_VERSION_NUM < 150000
#error "inbox needs PostgreSQL 15 or later"
#endif

#if PG_VERSION_NUM >= 160000
#define inbox_proc_aclcheck(oid, role) object_aclcheck(ProcedureRelationId, oid, role, ACL_EXECUTE)
#else
#define inbox_proc_aclcheck(oid, role) pg_proc_aclcheck(oid, role, ACL_EXECUTE)
#endif

#if PG_VERSION_NUM >= 170000
#define inbox_log_message(prefix) LogLogicalMessage(prefix, "", 0, true, false)
#else
#define inbox_log_message(prefix) LogLogicalMessage(prefix, "", 0, true)
#endif

#if PG_VERSION_NUM >= 180000
#define inbox_index_beginscan(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#define inbox_primary_key(rel) RelationGetPrimaryKeyIndex(rel, false)
#else
#define inbox_index_beginscan(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, nkeys, 0)
#define inbox_primary_key(rel) RelationGetPrimaryKeyIndex(rel)
#endif

#ifndef PG_MODULE_MAGIC_EXT
#define PG_MODULE_MAGIC_EXT(...) PG_MODULE_MAGIC
#endif

#endif
