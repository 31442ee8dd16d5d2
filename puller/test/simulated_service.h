/* SPDX-License-Identifier: PostgreSQL */
/*
 * A Pub/Sub service for simulated pullers, and the messages, with faults of every kind until
 * FAULTS_END_MS. An acknowledgement of a message that has not ended is a failed assertion.
 */
#ifndef INBOX_TEST_SIMULATED_SERVICE_H
#define INBOX_TEST_SIMULATED_SERVICE_H

#include "simulated_cluster.h"

#define KEYS 5
#define FAULTS_END_MS INT64_C(600000)

enum kind
{
	KIND_GOOD,
	KIND_FLAKY,	   /* fails twice */
	KIND_POISON,   /* always fails */
	KIND_DEFERRED, /* always fails, and no error names it */
	KIND_KILLER	   /* ends its backend */
};

/* A published message, as the service and the database see it. */
struct item
{
	int ordering_key; /* 0: none */
	int key;		  /* the first message that has it */
	enum kind kind;
	/* the service */
	enum
	{
		WAITING,
		LEASED,
		ACKED
	} state;
	bool acked; /* or a copy of it, once; it may be delivered again all the same */
	int delivery;
	int64_t lease_end;
	/* what went wrong with it, whatever is recorded of that */
	int tries;	  /* that failed */
	int timeouts; /* of transactions it was in */
	int losses;	  /* of connections it was on */
};

static struct item items[ITEMS_MAX];
static int item_count;
static int puller_count;
static int64_t deadline_s;
static int keys;			 /* ordering keys in use */
static bool exactly_once;	 /* stale ack ids are refused, one by one */
static bool ordered;		 /* a subscription without order delivers the keys all the same */
static int faults;			 /* percent of what is possible */
static int64_t service_away; /* until then */

static bool
faulty(int percent)
{
	return world_ms < FAULTS_END_MS && happens(percent * faults / 100);
}

/* With one message all that follow it in its ordering key come again, also acknowledged ones. */
static void
return_item(int index)
{
	items[index].state = WAITING;
	for (int i = index + 1; ordered && items[index].ordering_key != 0 && i < item_count; i++)
	{
		if (items[i].ordering_key == items[index].ordering_key)
		{
			items[i].state = WAITING;
		}
	}
}

/* Whatever its state: the service may deliver again what is leased, or acknowledged. */
static void
deliver_again(void)
{
	if (faulty(2))
	{
		return_item(chance(item_count));
	}
}

/* Back to before the first message. */
static void
seek(void)
{
	if (seek_ms == 0 || world_ms < seek_ms)
	{
		return;
	}
	seek_ms = 0;
	for (int i = 0; i < item_count; i++)
	{
		if (items[i].state == ACKED)
		{
			items[i].state = WAITING;
		}
	}
}

static void
end_leases(void)
{
	for (int i = 0; i < item_count; i++)
	{
		if (items[i].state == LEASED && items[i].lease_end <= world_ms)
		{
			return_item(i);
		}
	}
}

/* Nothing of an ordering key is delivered while something of it is out, but by the same answer. */
static bool
may_deliver(int index, const bool *out)
{
	return items[index].state == WAITING &&
		   (!ordered || items[index].ordering_key == 0 || !out[items[index].ordering_key]);
}

static int
deliver(char *body, size_t room, int most)
{
	bool out[KEYS + 1] = {false};
	int delivered = 0;
	size_t at = 0;

	for (int i = 0; i < item_count; i++)
	{
		out[items[i].ordering_key] |= items[i].state == LEASED;
	}
	at += (size_t) snprintf(body, room, "{\"receivedMessages\":[");
	for (int i = 0; i < item_count && delivered < most; i++)
	{
		struct item *item = &items[i];
		char ordering[32] = "";

		if (!may_deliver(i, out))
		{
			continue;
		}
		item->state = LEASED;
		item->lease_end = world_ms + deadline_s * 1000;
		item->delivery++;
		if (item->ordering_key != 0)
		{
			snprintf(ordering, sizeof(ordering), ",\"orderingKey\":\"o%d\"", item->ordering_key);
		}
		at += (size_t) snprintf(body + at, room - at,
								"%s{\"ackId\":\"%d.%d\",\"message\":{\"messageId\":\"m%d\","
								"\"data\":\"YQ==\",\"attributes\":{\"idempotency_key\":\"%d\"}%s}}",
								delivered++ > 0 ? "," : "", i, item->delivery, i, item->key,
								ordering);
	}
	snprintf(body + at, room - at, "]}");
	return delivered;
}

static bool
any_waits(void)
{
	static char body[ITEMS_MAX * 200];
	struct item before[ITEMS_MAX];
	int count;

	memcpy(before, items, sizeof(items));
	count = deliver(body, sizeof(body), 1);
	memcpy(items, before, sizeof(items));
	return count > 0;
}

static struct item *
find_item(const char *ack_id)
{
	int index;
	int delivery;

	assert_int_equal(sscanf(ack_id, "%d.%d", &index, &delivery), 2);
	return items[index].delivery == delivery && items[index].state == LEASED ? &items[index] : NULL;
}

static bool
is_early(const struct item *item)
{
	for (const struct item *before = items; before < item; before++)
	{
		if (item->ordering_key != 0 && before->ordering_key == item->ordering_key &&
			before->state != ACKED)
		{
			return true;
		}
	}
	return false;
}

static void
note_failed(struct json_object *failures, const char *ack_id, const char *reason)
{
	json_object_object_add(failures, ack_id, json_object_new_string(reason));
}

/* As far as the puller knows. */
static void
note_acknowledged(int key)
{
	items[key].acked = true;
	if (!newest_row(key)->claimed)
	{
		note_lost(key);
	}
}

static void
acknowledge(const struct call *call, struct json_object *failures)
{
	for (size_t i = 0; i < call->count; i++)
	{
		struct item *item = find_item(call->ids[i]);
		int key = items[atoi(call->ids[i])].key;

		/* The promise: acknowledged is only what has ended. */
		assert_true(databases[call->timeline].rows[key].claimed);
		if (item == NULL)
		{
			note_failed(failures, call->ids[i], "PERMANENT_FAILURE_INVALID_ACK_ID");
		}
		else if (exactly_once && ordered && is_early(item))
		{
			note_failed(failures, call->ids[i], "TRANSIENT_FAILURE_UNORDERED_ACK_ID");
			continue;
		}
		else
		{
			item->state = ACKED;
		}
		/* Without exactly-once delivery nobody is told that it came too late. */
		if (item != NULL || !exactly_once)
		{
			note_acknowledged(key);
		}
	}
}

static void
modify(const struct call *call, struct json_object *failures)
{
	for (size_t i = 0; i < call->count; i++)
	{
		struct item *item = find_item(call->ids[i]);

		if (item == NULL)
		{
			note_failed(failures, call->ids[i], "PERMANENT_FAILURE_INVALID_ACK_ID");
		}
		else if (call->number == 0)
		{
			return_item((int) (item - items));
		}
		else
		{
			item->lease_end = world_ms + call->number * 1000;
		}
	}
}

static int64_t
call_due(const struct call *call)
{
	if (call->kind == CALL_PULL)
	{
		return world_ms + 1 + chance(30);
	}
	return world_ms + 1 + chance(faulty(20) ? 9000 : 60);
}

static void
answer_pull(struct call *call)
{
	static char body[ITEMS_MAX * 200];

	deliver(body, sizeof(body), call->number);
	trace_text(body);
	if (faulty(10))
	{
		answer_call(call, PUBSUB_TRANSIENT, "", NULL);
		return;
	}
	answer_call(call, PUBSUB_OK, body, NULL);
}

static void
execute(const struct call *call, struct json_object *failures)
{
	if (call->kind == CALL_ACK)
	{
		acknowledge(call, failures);
	}
	else if (call->kind == CALL_MODACK)
	{
		modify(call, failures);
	}
}

/* Executed or not, its answer may be lost. */
static void
answer_request(struct call *call)
{
	bool away = world_ms < service_away;
	bool lost = away || faulty(30);
	struct json_object *failures = json_object_new_object();

	if (!away && (!lost || happens(50)))
	{
		execute(call, failures);
	}
	if (lost)
	{
		answer_call(call, !away && happens(20) ? PUBSUB_INVALID : PUBSUB_TRANSIENT, "", NULL);
	}
	else if (exactly_once && json_object_object_length(failures) > 0)
	{
		answer_call(call, PUBSUB_INVALID, "", json_object_get(failures));
	}
	else
	{
		answer_call(call, PUBSUB_OK,
					call->kind == CALL_GET && deadline_s == 30 ? "{\"ackDeadlineSeconds\":30}"
															   : "{}",
					NULL);
	}
	json_object_put(failures);
}

/* A pull is held as long as there is nothing, up to 90 s. */
static bool
is_answered(const struct call *call)
{
	return call->due_ms <= world_ms &&
		   (call->kind != CALL_PULL || world_ms >= call->sent_ms + 90000 || any_waits());
}

static bool
answer_calls(void)
{
	for (size_t i = 0; i < call_count; i++)
	{
		if (is_answered(&calls[i]))
		{
			struct call call = take_call(i);

			call.kind == CALL_PULL ? answer_pull(&call) : answer_request(&call);
			return true;
		}
	}
	return false;
}

#endif
