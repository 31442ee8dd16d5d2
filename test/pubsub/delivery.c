/* SPDX-License-Identifier: PostgreSQL */
#include "deadletter.h"
#include "delivery.h"
#include "entry.h"
#include "history.h"
#include "order.h"
#include "service.h"
#include "subscription.h"

const char *
verdict_name(enum verdict verdict)
{
	static const char *const names[] = {"done", "stale", "unordered", "foreign"};

	return names[verdict];
}

void
delivery_lease(struct entry *entry, int64_t nanoseconds, char ack_id[ACKID_LEN + 1])
{
	struct service *service = entry->subscription->service;
	struct ackid id = {entry->subscription->number, entry->position, ++service->last_lease};

	entry->lease = id.lease;
	entry_set_state(entry, ENTRY_LEASED, timer_now() + nanoseconds);
	ackid_format(service->ack_secret, &id, ack_id);
	ack_id[ACKID_LEN] = '\0';
	service->counters.delivered++;
	history_deliver(service->history, entry, ack_id, nanoseconds);
}

struct entry *
delivery_next_of_run(const struct entry *entry)
{
	struct entry *next;

	if (entry->order == NULL || entry->in_order.next == &entry->order->entries)
		return NULL;
	next = OWNER(entry->in_order.next, struct entry, in_order);
	return next->state == ENTRY_WAITING ? next : NULL;
}

enum verdict
delivery_find(struct subscription *subscription, const char *ack_id, size_t len,
			  struct entry **entry)
{
	struct ackid id;
	struct entry *found;

	*entry = NULL;
	if (!ackid_parse(subscription->service->ack_secret, ack_id, len, &id) ||
		id.subscription != subscription->number)
		return VERDICT_FOREIGN;
	found = subscription_entry(subscription, id.position);
	if (found == NULL || found->lease != id.lease || found->state == ENTRY_ACKED)
		return VERDICT_STALE;
	/* Elsewhere an id that expired works until the message is delivered again. */
	if (subscription->settings.exactly_once && found->state != ENTRY_LEASED)
		return VERDICT_STALE;
	*entry = found;
	return VERDICT_DONE;
}

static void
finish(struct entry *entry)
{
	struct order *order = entry->order;

	entry_set_state(entry, ENTRY_ACKED, 0);
	if (order != NULL)
		order_advance(order);
	else if (!subscription_retains(entry->subscription))
		subscription_drop(entry);
}

enum verdict
delivery_ack(struct entry *entry)
{
	if (entry->order != NULL && !order_is_head(entry))
	{
		if (entry->subscription->settings.exactly_once)
			return VERDICT_UNORDERED;
		/* After a failure before it, its place in the order has to be kept. */
		if (entry->state != ENTRY_LEASED)
			return VERDICT_STALE;
	}
	finish(entry);
	return VERDICT_DONE;
}

static int64_t
backoff_of(const struct entry *entry)
{
	const struct settings *settings = &entry->subscription->settings;
	int64_t backoff = settings->min_backoff;

	if (!settings->retries)
		return 0;
	for (int i = 1; i < entry->failures && backoff < settings->max_backoff; i++)
		backoff *= 2;
	return backoff < settings->max_backoff ? backoff : settings->max_backoff;
}

/* One more failed delivery: it goes to the dead letters, or it comes again after its backoff. */
static void
fail(struct entry *entry)
{
	const struct settings *settings = &entry->subscription->settings;
	struct order *order = entry->order;
	int64_t backoff;

	entry->failures++;
	if (order != NULL)
		order_rewind(entry);
	if (settings->dead_letter_topic != NULL && entry->failures >= settings->max_attempts &&
		deadletter_forward(entry))
	{
		order_leave(entry);
		finish(entry);
	}
	else
	{
		backoff = backoff_of(entry);
		if (backoff > 0)
			entry_set_state(entry, ENTRY_BACKOFF, timer_now() + backoff);
		else if (order == NULL)
			entry_set_state(entry, ENTRY_READY, 0);
	}
	if (order != NULL)
		order_advance(order);
}

enum verdict
delivery_modify(struct entry *entry, int64_t seconds)
{
	struct service *service = entry->subscription->service;

	if (entry->state != ENTRY_LEASED)
		return VERDICT_STALE;
	if (seconds > 0)
	{
		service->counters.extended++;
		entry_set_state(entry, ENTRY_LEASED, timer_now() + seconds * SECOND);
		return VERDICT_DONE;
	}
	service->counters.nacked++;
	fail(entry);
	return VERDICT_DONE;
}

void
delivery_expire(struct entry *entry)
{
	struct service *service = entry->subscription->service;

	service->counters.expired++;
	history_entry(service->history, "expire", entry);
	fail(entry);
}

void
delivery_resume(struct entry *entry)
{
	if (entry->order == NULL)
	{
		entry_set_state(entry, ENTRY_READY, 0);
		return;
	}
	entry_set_state(entry, ENTRY_WAITING, 0);
	order_advance(entry->order);
}

void
delivery_repeat(struct entry *entry)
{
	if (entry->order == NULL)
	{
		entry_set_state(entry, ENTRY_READY, 0);
		return;
	}
	order_rewind(entry);
	order_advance(entry->order);
}
