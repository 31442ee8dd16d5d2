/* SPDX-License-Identifier: PostgreSQL */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "acked.h"
#include "buf.h"
#include "database.h"
#include "history.h"
#include "list.h"
#include "lookup.h"
#include "memory.h"
#include "message.h"
#include "service.h"
#include "subscription.h"

/* The OID of text[], the same in every database. */
#define TEXT_ARRAY 1009

#define STANDBY_PERIOD (20 * MILLISECOND)

/* A claim, or any record of a message that was not applied but is kept, will do. */
static const char default_sql[] =
	"SELECT w.key FROM ROWS FROM (unnest($1::text[]), unnest($2::text[])) AS w(key, id) "
	"WHERE EXISTS (SELECT FROM inbox_source s JOIN inbox_claim c ON c.source_id = s.id "
	"WHERE c.key = w.key) "
	"OR EXISTS (SELECT FROM inbox_failure f WHERE f.message_id = w.id AND f.status <> 'retrying')";

static const char flushed_sql[] = "SELECT pg_current_wal_flush_lsn()";

/* A standby that was promoted has replayed all it ever will. */
static const char replayed_sql[] =
	"SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() >= $1::pg_lsn "
	"ELSE true END";

/* What is asked about a batch: first the position of the write-ahead log, then the keys. */
enum step
{
	STEP_POSITION,
	STEP_KEYS
};

/* A database and what is to be looked up in it, oldest first; the first is being looked up. */
struct side
{
	struct database database;
	struct lookup *lookup;
	struct link batches;
	enum step step;
	bool reached; /* the position is known (primary), or replayed (standby) */
	uint64_t looked_up;
	uint64_t lost;
};

struct lookup
{
	struct service *service;
	const char *key;
	const char *sql;
	struct acked_batch *current; /* what came since the last settling; NULL: nothing */
	struct side primary;
	struct side standby;
};

static struct side *
side_of(struct database *database)
{
	return OWNER(database, struct side, database);
}

static struct acked_batch *
first_of(struct side *side)
{
	return list_empty(&side->batches) ? NULL : OWNER(side->batches.next, struct acked_batch, link);
}

static void
send_lookup(struct side *side, const struct acked_batch *batch)
{
	char *keys = acked_keys(batch);
	char *ids = acked_messages(batch);
	const char *values[] = {keys, ids};
	/* Said, so that a query may leave one of them unused. */
	const Oid types[] = {TEXT_ARRAY, TEXT_ARRAY};

	database_query(&side->database, side->lookup->sql, 2, types, values);
	free(keys);
	free(ids);
}

static void
ready(struct database *database)
{
	struct side *side = side_of(database);
	struct acked_batch *batch = first_of(side);
	const char *values[1];

	if (batch == NULL)
		return;
	values[0] = batch->flushed;
	if (side->step == STEP_KEYS)
		send_lookup(side, batch);
	else if (side == &side->lookup->primary)
		database_query(database, flushed_sql, 0, NULL, NULL);
	else
		database_query(database, replayed_sql, 1, NULL, values);
}

static void
take_rows(struct side *side, struct acked_batch *batch, PGresult *rows)
{
	for (int row = 0; row < PQntuples(rows); row++)
	{
		const char *value = PQgetvalue(rows, row, 0);

		if (side->step == STEP_KEYS)
			acked_find(batch, value);
		else if (side == &side->lookup->primary)
		{
			snprintf(batch->flushed, sizeof(batch->flushed), "%s", value);
			side->reached = true;
		}
		else
			side->reached = strcmp(value, "t") == 0;
	}
}

static void
report_lost(struct side *side, const struct acked *acked)
{
	side->lost++;
	fprintf(stderr,
			"LOST: key %s (message %" PRIu64
			" of %s) was acknowledged and is not in the %s database\n",
			acked->key, acked->message, acked->subscription, side->database.name);
	history_lookup(side->lookup->service->history, side->database.name, "lost", acked->subscription,
				   acked->key, acked->message);
}

/* The batch is through on this side. */
static void
finish(struct side *side, struct acked_batch *batch)
{
	struct side *standby = &side->lookup->standby;

	for (size_t i = 0; i < batch->count; i++)
	{
		if (!batch->acked[i].found)
			report_lost(side, &batch->acked[i]);
	}
	side->looked_up += batch->count;
	link_remove(&batch->link);
	if (side != standby && standby->database.conninfo != NULL)
	{
		acked_forget(batch);
		list_append(&standby->batches, &batch->link);
	}
	else
		acked_free(batch);
}

/* Begins with the first batch, or begins again. */
static void
begin(struct side *side)
{
	struct acked_batch *batch = first_of(side);

	side->step = STEP_POSITION;
	side->reached = false;
	if (batch != NULL)
		acked_forget(batch);
}

static void
result(struct database *database, PGresult *rows)
{
	struct side *side = side_of(database);
	struct acked_batch *batch = first_of(side);

	if (rows != NULL)
		take_rows(side, batch, rows);
	else if (side->step == STEP_KEYS)
	{
		finish(side, batch);
		begin(side);
	}
	else if (side->reached)
		side->step = STEP_KEYS;
	else
		database_pause(database, STANDBY_PERIOD);
}

static void
lost(struct database *database)
{
	begin(side_of(database));
}

static void
side_open(struct side *side, struct lookup *lookup, const char *name, const char *conninfo)
{
	side->lookup = lookup;
	list_init(&side->batches);
	side->database.timers = &lookup->service->timers;
	side->database.name = name;
	side->database.conninfo = conninfo;
	side->database.ready = ready;
	side->database.result = result;
	side->database.lost = lost;
	if (conninfo != NULL)
		database_open(&side->database);
}

static void
side_close(struct side *side)
{
	struct acked_batch *batch;

	if (side->database.conninfo != NULL)
		database_close(&side->database);
	while ((batch = first_of(side)) != NULL)
	{
		link_remove(&batch->link);
		acked_free(batch);
	}
}

struct lookup *
lookup_new(struct service *service, const struct lookup_options *options)
{
	struct lookup *lookup = memory_get(sizeof(*lookup));

	lookup->service = service;
	lookup->key = options->key ? options->key : "idempotency_key";
	lookup->sql = options->sql ? options->sql : default_sql;
	side_open(&lookup->primary, lookup, "primary", options->primary);
	side_open(&lookup->standby, lookup, "standby", options->standby);
	return lookup;
}

void
lookup_free(struct lookup *lookup)
{
	if (lookup == NULL)
		return;
	side_close(&lookup->primary);
	side_close(&lookup->standby);
	acked_free(lookup->current);
	free(lookup);
}

/* The key as the client has it: the attribute, or the message id where that cannot be a key. */
static char *
key_of(const struct lookup *lookup, const struct message *message)
{
	struct json_object *value = NULL;
	struct buf out = {0};

	if (message->attributes != NULL)
		json_object_object_get_ex(message->attributes, lookup->key, &value);
	if (value != NULL && json_object_get_string_len(value) > 0 &&
		strlen(json_object_get_string(value)) == (size_t) json_object_get_string_len(value))
		return memory_copy(json_object_get_string(value));
	buf_printf(&out, "mid:%" PRIu64, message->id);
	return out.data;
}

void
lookup_add(struct lookup *lookup, const struct subscription *subscription,
		   const struct message *message)
{
	char *key = key_of(lookup, message);

	if (lookup->current == NULL)
		lookup->current = memory_get(sizeof(*lookup->current));
	acked_add(lookup->current, key, message->id, subscription->name);
	free(key);
}

void
lookup_settle(struct lookup *lookup)
{
	if (lookup->current == NULL)
		return;
	list_append(&lookup->primary.batches, &lookup->current->link);
	lookup->current = NULL;
}

size_t
lookup_descriptors(struct lookup *lookup, struct pollfd *descriptors)
{
	size_t count = 0;

	count += database_poll(&lookup->primary.database, &descriptors[count]);
	count += database_poll(&lookup->standby.database, &descriptors[count]);
	return count;
}

void
lookup_run(struct lookup *lookup)
{
	database_run(&lookup->primary.database);
	database_run(&lookup->standby.database);
}

static struct json_object *
side_render(const struct side *side)
{
	struct json_object *object = json_object_new_object();
	size_t pending = 0;

	for (const struct link *link = side->batches.next; link != &side->batches; link = link->next)
		pending += OWNER(link, struct acked_batch, link)->count;
	json_object_object_add(object, "lookedUp", json_object_new_uint64(side->looked_up));
	json_object_object_add(object, "pending", json_object_new_uint64(pending));
	json_object_object_add(object, "lost", json_object_new_uint64(side->lost));
	if (side->database.problem[0] != '\0')
		json_object_object_add(object, "problem", json_object_new_string(side->database.problem));
	return object;
}

struct json_object *
lookup_render(const struct lookup *lookup)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "primary", side_render(&lookup->primary));
	if (lookup->standby.database.conninfo != NULL)
		json_object_object_add(object, "standby", side_render(&lookup->standby));
	return object;
}
