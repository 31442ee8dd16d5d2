/* SPDX-License-Identifier: PostgreSQL */
/* A stream of messages through simulated pullers, with all that a seed decides, until it has ended. */
#ifndef INBOX_TEST_SIMULATED_RUN_H
#define INBOX_TEST_SIMULATED_RUN_H

#include "simulated_database.h"

/* Far more than everything takes. */
#define END_MS INT64_C(6 * 3600 * 1000)

/* Only messages without an ordering key are copied. */
static void
publish(void)
{
	static const enum kind kinds[] = {KIND_FLAKY, KIND_POISON, KIND_DEFERRED, KIND_KILLER};

	item_count = 1 + chance(ITEMS_MAX);
	for (int i = 0; i < item_count; i++)
	{
		int other = chance(i + 1);

		items[i] = (struct item){.ordering_key = chance(keys + 1), .key = i};
		if (items[i].ordering_key == 0 && items[other].ordering_key == 0 && happens(10))
		{
			items[i].key = items[other].key;
		}
		if (happens(12))
		{
			items[i].kind = kinds[chance(4)];
		}
	}
}

static bool
all_ended(void)
{
	for (int i = 0; i < item_count; i++)
	{
		if (items[i].state != ACKED)
		{
			return false;
		}
	}
	if (seek_ms != 0)
	{
		return false;
	}
	for (int i = 0; i < puller_count; i++)
	{
		if (pullers[i].board.held > 0)
		{
			return false;
		}
	}
	return true;
}

static int64_t
sooner(int64_t one, int64_t other)
{
	return one < other ? one : other;
}

static int64_t
next_event(void)
{
	int64_t next = seek_ms != 0 ? sooner(seek_ms, world_ms + 60000) : world_ms + 60000;

	for (int i = 0; i < item_count; i++)
	{
		if (items[i].state == LEASED)
		{
			next = sooner(next, items[i].lease_end);
		}
	}
	for (size_t i = 0; i < call_count; i++)
	{
		next =
			sooner(next, calls[i].due_ms > world_ms ? calls[i].due_ms : calls[i].sent_ms + 90000);
	}
	for (int i = 0; i < puller_count; i++)
	{
		next = sooner(next, flow_deadline(&pullers[i], world_ms));
		for (int j = 0; j < pullers[i].workers; j++)
		{
			const struct worker *worker = &pullers[i].worker[j];

			if (worker->db.state == DB_CONNECTING || worker->db.state == DB_BUSY)
			{
				next = sooner(next, *due_of(worker));
			}
		}
	}
	return next;
}

/*
 * What was acknowledged and is not in what was the standby is lost until somebody seeks, or comes
 * again by itself; those behind it are with pullers that cannot know.
 */
static void
fail_over(void)
{
	for (int i = 0; i < puller_count; i++)
	{
		for (int j = 0; j < pullers[i].workers; j++)
		{
			if (pullers[i].worker[j].db.state == DB_BUSY)
			{
				note_loss(&pullers[i].worker[j]);
			}
		}
	}
	promote_standby();
	for (int i = 0; i < item_count; i++)
	{
		if (items[i].acked && !newest_row(items[i].key)->claimed)
		{
			note_lost(items[i].key);
		}
	}
}

/* Connections that are idle find it out at once. */
static void
begin_outage(void)
{
	int64_t end = world_ms + 1 + chance(happens(20) ? 150000 : 15000);

	if (happens(50))
	{
		service_away = end;
		return;
	}
	database_away = end;
	if (newest + 1 < TIMELINES_MAX && happens(40))
	{
		fail_over();
	}
	for (int i = 0; i < puller_count; i++)
	{
		for (int j = 0; j < pullers[i].workers; j++)
		{
			struct worker *worker = &pullers[i].worker[j];

			if (worker->db.state == DB_IDLE && is_away(worker))
			{
				not_connected(worker);
			}
		}
	}
}

static void step(void);

static void
start(int place)
{
	static const char *const sizes[] = {"1", "2", "4", "8", "200"};
	static const char *const workers[] = {"1", "2", "4"};

	start_puller(place, workers[chance(3)], sizes[chance(5)]);
}

/* What it has sent may arrive or not, and another one starts. */
static void
kill_and_start(int place)
{
	for (int i = 0; i < pullers[place].workers; i++)
	{
		abandon(&pullers[place].worker[i]);
	}
	for (size_t i = 0; i < call_count; i++)
	{
		struct json_object *failures = json_object_new_object();

		if (calls[i].puller == &pullers[place] && world_ms >= service_away && happens(50))
		{
			execute(&calls[i], failures);
		}
		json_object_put(failures);
	}
	end_puller(place);
	seen[place] = 0;
	start(place);
}

/* SIGTERM ends a puller within its grace, at whatever it is; the others go on. */
static void
stop_puller(int place)
{
	int64_t end = world_ms + 26000;

	IN_PULLER(stop_begin(&pullers[place]));
	while (!pullers[place].done)
	{
		assert_true(world_ms <= end);
		step();
		world_ms = next_event();
	}
	assert_int_equal(pullers[place].exit_status, 0);
	kill_and_start(place);
}

static void
step(void)
{
	seek();
	end_leases();
	deliver_again();
	while (answer_calls() || answer_workers())
	{
		end_leases();
	}
	replicate();
	if (faulty(5))
	{
		begin_outage();
	}
	for (int i = 0; i < puller_count; i++)
	{
		turn(&pullers[i]);
	}
}

static void
begin_world(uint64_t seed)
{
	chance_state = seed;
	trace = 0;
	srandom((unsigned) seed); /* of pauses */
	world_ms = 1000;
	keys = 1 + chance(KEYS);
	slow = chance(60);
	faults = chance(101);
	exactly_once = happens(50);
	ordered = happens(75);
	service_away = 0;
	begin_databases();
	deadline_s = happens(50) ? 10 : 30;
	publish();
	puller_count = 1 + chance(PULLERS_MAX);
	for (int i = 0; i < puller_count; i++)
	{
		start(i);
	}
}

static void
run(uint64_t seed)
{
	begin_world(seed);
	while (!all_ended())
	{
		assert_true(world_ms < END_MS);
		step();
		world_ms = next_event();
		if (faulty(3))
		{
			happens(50) ? stop_puller(chance(puller_count)) : kill_and_start(chance(puller_count));
		}
	}
	for (int i = 0; i < item_count; i++)
	{
		assert_true(newest_row(items[i].key)->claimed);
		if (items[i].key == i && items[i].kind >= KIND_POISON)
		{
			assert_true(newest_row(i)->dead);
		}
	}
	while (puller_count > 0)
	{
		stop_puller(puller_count - 1);
		end_puller(--puller_count);
	}
}

#endif
