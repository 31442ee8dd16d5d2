/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>

#include <json-c/linkhash.h>

#include "entry.h"
#include "history.h"
#include "memory.h"
#include "message.h"
#include "order.h"
#include "service.h"
#include "subscription.h"

static struct order *
order_of(struct subscription *subscription, const char *key)
{
	void *found;
	struct order *order;

	if (lh_table_lookup_ex(subscription->orders, key, &found))
		return found;
	order = memory_get(sizeof(*order));
	order->key = memory_copy(key);
	list_init(&order->entries);
	lh_table_insert(subscription->orders, order->key, order);
	return order;
}

void
order_append(struct entry *entry)
{
	entry->order = order_of(entry->subscription, entry->message->ordering_key);
	list_append(&entry->order->entries, &entry->in_order);
}

void
order_leave(struct entry *entry)
{
	if (entry->order == NULL)
		return;
	link_remove(&entry->in_order);
	entry->order = NULL;
}

static struct entry *
head_of(const struct order *order)
{
	return list_empty(&order->entries) ? NULL : OWNER(order->entries.next, struct entry, in_order);
}

bool
order_is_head(const struct entry *entry)
{
	return entry->order != NULL && head_of(entry->order) == entry;
}

void
order_rewind(struct entry *entry)
{
	struct order *order = entry->order;

	for (struct link *link = &entry->in_order; link != &order->entries; link = link->next)
	{
		struct entry *member = OWNER(link, struct entry, in_order);

		if (member->state == ENTRY_ACKED)
			history_entry(member->subscription->service->history, "ack-undone", member);
		if (member != entry)
			member->lease = 0;
		entry_set_state(member, ENTRY_WAITING, 0);
	}
}

void
order_advance(struct order *order)
{
	struct entry *head;

	while ((head = head_of(order)) != NULL && head->state == ENTRY_ACKED)
	{
		order_leave(head);
		if (!subscription_retains(head->subscription))
			subscription_drop(head);
	}
	if (head != NULL && head->state == ENTRY_WAITING)
		entry_set_state(head, ENTRY_READY, 0);
}

struct lh_table *
order_table_new(void)
{
	return lh_kchar_table_new(16, NULL);
}

void
order_table_free(struct lh_table *orders)
{
	struct lh_entry *found;

	lh_foreach(orders, found)
	{
		struct order *order = (struct order *) lh_entry_v(found);

		free(order->key);
		free(order);
	}
	lh_table_free(orders);
}
