/* SPDX-License-Identifier: PostgreSQL */
#include "greeting.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "memory.h"
#include "version.h"

/*
 * The timeline comes from the name of the WAL file being written: the control file keeps the old
 * one for a while after a promotion.
 */
static const char find_inbox[] =
	"SELECT pg_catalog.quote_ident(n.nspname), e.extversion, e.oid IS NULL, m.count, t.oid,"
	" t.typarray, pg_catalog.pg_is_in_recovery(), pg_catalog.current_database(),"
	" (SELECT system_identifier FROM pg_catalog.pg_control_system()),"
	" CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.substr("
	"  pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8) END"
	" FROM (SELECT) AS one"
	" LEFT JOIN pg_catalog.pg_extension e ON e.extname OPERATOR(pg_catalog.=) 'inbox'"
	" LEFT JOIN (SELECT pg_catalog.min(c.relnamespace) AS namespace, pg_catalog.count(*)"
	"  FROM pg_catalog.pg_class c WHERE c.relname OPERATOR(pg_catalog.=) 'inbox_managed'"
	"  AND c.relkind OPERATOR(pg_catalog.=) 'r') m ON true"
	" LEFT JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=)"
	"  coalesce(e.extnamespace, CASE WHEN m.count OPERATOR(pg_catalog.=) 1 THEN m.namespace END)"
	" LEFT JOIN pg_catalog.pg_type t ON t.typnamespace OPERATOR(pg_catalog.=) n.oid"
	"  AND t.typname OPERATOR(pg_catalog.=) 'inbox_message'";

enum
{
	FACT_SCHEMA,
	FACT_VERSION,
	FACT_MANAGED,
	FACT_MANAGED_COUNT,
	FACT_TYPE,
	FACT_ARRAY_TYPE,
	FACT_IN_RECOVERY,
	FACT_DATABASE,
	FACT_SYSTEM_ID,
	FACT_TIMELINE
};

/* The fields of a shadow's greeting behind those that all have. */
enum
{
	SHADOW_SOURCES = 4,
	SHADOW_SERVED
};

void
greeting_free_facts(struct db_facts *facts)
{
	free(facts->schema);
	free(facts->version);
	free(facts->library);
	free(facts->handler);
	free(facts->system_id);
	free(facts->timeline);
	free(facts->lock_key);
	*facts = (struct db_facts){0};
}

bool
greeting_start(struct db *db)
{
	db->step = 0;
	db->greeted = false;
	db->refusal = DB_REFUSED_FOR_NOW;
	return PQsendQueryParams(db->connection, find_inbox, 0, NULL, NULL, NULL, NULL, 0) == 1;
}

/* The versions of the code and of the tables, the latter for what is not an extension. */
static char *
find_version(const struct db *db)
{
	const char *schema = db->facts.schema;

	if (!db->facts.managed)
	{
		return memory_format("%s.inbox_version(), NULL", schema);
	}
	return memory_format("%s.inbox_version(), (SELECT m.version FROM %s.inbox_managed m"
						 " ORDER BY m.installed_at DESC LIMIT 1)",
						 schema, schema);
}

/* A consumer of dead letters and a purge run no handler, and --check changes nothing. */
static bool
ask_version(struct db *db)
{
	char *version = find_version(db);
	char *sql = memory_format("SELECT %s, NULL, NULL", version);
	bool sent = PQsendQueryParams(db->connection, sql, 0, NULL, NULL, NULL, NULL, 0) == 1;

	free(version);
	free(sql);
	return sent;
}

static bool
is_shadow(const struct db *db)
{
	return db->config->shadow && !db->config->check;
}

/* A shadow serves nothing; whom it would take messages from has to be known. */
static bool
ask_as_shadow(struct db *db)
{
	const struct config *config = db->config;
	const char *values[] = {config->handler, config->source, config->subscription};
	static const Oid types[] = {25, 25, 25};
	char *version = find_version(db);
	char *sql =
		memory_format("SELECT %s, %s.inbox_handler($1), NULL, (SELECT pg_catalog.count(*) FROM"
					  " %s.inbox_served($2)), (SELECT pg_catalog.min(s.source) FROM"
					  " %s.inbox_status() s WHERE s.subscription OPERATOR(pg_catalog.=) $3)",
					  version, db->facts.schema, db->facts.schema, db->facts.schema);
	bool sent = PQsendQueryParams(db->connection, sql, 3, types, values, NULL, NULL, 0) == 1;

	free(version);
	free(sql);
	return sent;
}

static bool
ask_to_serve(struct db *db)
{
	const struct config *config = db->config;
	const char *values[] = {config->source, config->handler, config->subscription,
							config->take_over ? "true" : "false", config->lock_group};
	static const Oid types[] = {25, 25, 25, 16, 25};
	char *version = find_version(db);
	char *sql = memory_format("SELECT %s, handler_signature, lock_key"
							  " FROM %s.inbox_serve($1, $2, $3, $4, $5)",
							  version, db->facts.schema);
	bool sent = PQsendQueryParams(db->connection, sql, 5, types, values, NULL, NULL, 0) == 1;

	free(version);
	free(sql);
	return sent;
}

static void
log_refused(const struct db *db, const char *sqlstate, const char *error, const char *detail,
			const char *hint)
{
	log_event(LOG_ERROR, "db_refused", "worker", LOG_INT, (int64_t) db->number, "source", LOG_TEXT,
			  db->config->source, "handler", LOG_TEXT, db->config->handler, "sqlstate", LOG_TEXT,
			  sqlstate, "err", LOG_TEXT, error, "detail", LOG_TEXT, detail, "hint", LOG_TEXT, hint,
			  NULL);
}

static char *
copy_field(const PGresult *result, int field)
{
	return PQgetisnull(result, 0, field) ? NULL : memory_copy_text(PQgetvalue(result, 0, field));
}

static enum db_refusal
refuse_missing_inbox(const struct db *db, const PGresult *result)
{
	bool several = strtol(PQgetvalue(result, 0, FACT_MANAGED_COUNT), NULL, 10) > 1;
	char *error = memory_format(several ? "inbox is installed more than once in database \"%s\""
										: "the extension inbox is not installed in database \"%s\"",
								PQgetvalue(result, 0, FACT_DATABASE));

	log_refused(db, NULL, error, NULL,
				several ? "each would know half of the keys: keep one schema with a table "
						  "inbox_managed"
						: "connect to it as its owner and run: CREATE EXTENSION inbox; where the "
						  "server loads no library: psql -f inbox-managed.sql");
	free(error);
	return DB_REFUSED_MISSING;
}

/* Zero when the facts are fine. */
static bool
read_facts(struct db *db, const PGresult *result, enum db_refusal *refusal)
{
	struct db_facts *facts = &db->facts;

	if (PQgetisnull(result, 0, FACT_SCHEMA))
	{
		*refusal = refuse_missing_inbox(db, result);
		return false;
	}
	if (PQgetvalue(result, 0, FACT_IN_RECOVERY)[0] == 't')
	{
		log_refused(db, NULL, "the server is a standby and cannot write", NULL,
					"connect to the primary, or add target_session_attrs=read-write to --dbname");
		*refusal = DB_REFUSED_FOR_NOW;
		return false;
	}
	facts->schema = copy_field(result, FACT_SCHEMA);
	facts->version = copy_field(result, FACT_VERSION);
	facts->managed = PQgetvalue(result, 0, FACT_MANAGED)[0] == 't';
	facts->system_id = copy_field(result, FACT_SYSTEM_ID);
	facts->timeline = copy_field(result, FACT_TIMELINE);
	facts->message_type = (Oid) strtoul(PQgetvalue(result, 0, FACT_TYPE), NULL, 10);
	facts->message_array_type = (Oid) strtoul(PQgetvalue(result, 0, FACT_ARRAY_TYPE), NULL, 10);
	facts->server_version = PQserverVersion(db->connection);
	return true;
}

static bool
check_versions(struct db *db, enum db_refusal *refusal)
{
	const struct db_facts *facts = &db->facts;
	char *detail;

	if (version_fits(facts->version) && version_fits(facts->library))
	{
		return true;
	}
	detail = memory_format(
		facts->managed ? "inbox-puller is %s, the managed tables are %s, the functions are %s"
					   : "inbox-puller is %s, the extension's objects are %s, its library is %s",
		INBOX_VERSION, facts->version != NULL ? facts->version : "unknown", facts->library);
	log_refused(db, NULL,
				facts->managed ? "the versions of inbox-puller and of the managed inbox do not fit"
							   : "the versions of inbox-puller and of the extension do not fit",
				detail, version_remedy(facts));
	free(detail);
	*refusal = DB_REFUSED_MISMATCH;
	return false;
}

static enum db_refusal
refusal_of(const char *sqlstate)
{
	if (sqlstate == NULL)
	{
		return DB_REFUSED_FOR_NOW;
	}
	if (strcmp(sqlstate, "IX005") == 0)
	{
		return DB_REFUSED_MISMATCH;
	}
	return strncmp(sqlstate, "42", 2) == 0 || strncmp(sqlstate, "3F", 2) == 0 ||
				   strncmp(sqlstate, "IX", 2) == 0
			   ? DB_REFUSED_MISSING
			   : DB_REFUSED_FOR_NOW;
}

/* The remedy for an error that comes without one. */
char *
greeting_hint(const PGconn *connection, const char *sqlstate)
{
	static const struct
	{
		const char *sqlstate;
		const char *hint;
	} hints[] = {
		{"42883", "create the function, or check --handler: without a schema in front it is looked "
				  "for in the role's search_path"},
		{"3F000", "check the schema in --handler"},
		{"42725", "name one of them with its argument types, as in --handler 'f(jsonb)'"},
		{"25006",
		 "default_transaction_read_only is on for the server, the database or the role: it "
		 "goes on when that is off"},
		{"57014", "the statement_timeout of the server, the database or the role is too short, or "
				  "inbox_source is locked for longer: see pg_stat_activity"},
		{"55P03", "somebody holds a lock on inbox_source: see pg_stat_activity"},
	};

	if (sqlstate != NULL && strcmp(sqlstate, "42501") == 0)
	{
		return memory_format(
			"as the extension's owner run: SELECT inbox_grant('%s', 'puller'); the "
			"role also needs USAGE on the schema of the extension and of the "
			"handler, and EXECUTE on the handler",
			PQuser(connection));
	}
	for (size_t i = 0; sqlstate != NULL && i < sizeof(hints) / sizeof(hints[0]); i++)
	{
		if (strcmp(hints[i].sqlstate, sqlstate) == 0)
		{
			return memory_copy_text(hints[i].hint);
		}
	}
	return NULL;
}

static void
refuse_error(const struct db *db, const PGresult *result, enum db_refusal *refusal)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *given = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
	char *hint = given != NULL ? memory_copy_text(given) : greeting_hint(db->connection, sqlstate);

	log_refused(db, sqlstate, message != NULL ? message : PQresultErrorMessage(result),
				PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL), hint);
	free(hint);
	*refusal = refusal_of(sqlstate);
}

static bool
check_shadow(const struct db *db, const PGresult *result, enum db_refusal *refusal)
{
	char *hint = NULL;
	bool refused;

	if (!PQgetisnull(result, 0, SHADOW_SERVED))
	{
		hint = memory_format("make a second subscription to its topic and give that; source %s "
							 "is served from this one",
							 PQgetvalue(result, 0, SHADOW_SERVED));
		log_refused(db, NULL, "a shadow would take the messages of the subscription away", NULL,
					hint);
		*refusal = DB_REFUSED_MISMATCH;
	}
	else if (strcmp(PQgetvalue(result, 0, SHADOW_SOURCES), "0") == 0)
	{
		hint = memory_format("SELECT %s.inbox_configure('%s') makes it, or inbox_import() with "
							 "the keys of another consumer",
							 db->facts.schema, db->config->source);
		log_refused(db, NULL, "the source is not there, and a shadow makes nothing", NULL, hint);
		*refusal = DB_REFUSED_MISSING;
	}
	refused = hint != NULL;
	free(hint);
	return !refused;
}

static bool
take_answer(struct db *db, const PGresult *result, enum db_refusal *refusal)
{
	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
	{
		refuse_error(db, result, refusal);
		return false;
	}
	if (db->step == 0)
	{
		return read_facts(db, result, refusal);
	}
	db->facts.library = copy_field(result, 0);
	if (db->facts.managed)
	{
		db->facts.version = copy_field(result, 1);
	}
	db->facts.handler = copy_field(result, 2);
	db->facts.lock_key = copy_field(result, 3);
	return check_versions(db, refusal) && (!is_shadow(db) || check_shadow(db, result, refusal));
}

static enum greeting_outcome
next_step(struct db *db)
{
	db->step++;
	db->greeted = false;
	if (db->step == 1)
	{
		bool asked = !db->serves	 ? ask_version(db)
					 : is_shadow(db) ? ask_as_shadow(db)
									 : ask_to_serve(db);

		db->flush = true;
		return asked ? GREETING_GOES_ON : GREETING_FAILED;
	}
	return PQenterPipelineMode(db->connection) == 1 ? GREETING_DONE : GREETING_FAILED;
}

enum greeting_outcome
greeting_read(struct db *db, enum db_refusal *refusal)
{
	/* Behind a result the end of the answer may still be on its way, and is not to be waited for. */
	while (PQisBusy(db->connection) == 0)
	{
		PGresult *result = PQgetResult(db->connection);

		if (result == NULL)
		{
			*refusal = db->refusal;
			return db->greeted && PQstatus(db->connection) == CONNECTION_OK ? next_step(db)
																			: GREETING_FAILED;
		}
		db->greeted = take_answer(db, result, &db->refusal);
		PQclear(result);
	}
	return GREETING_GOES_ON;
}
