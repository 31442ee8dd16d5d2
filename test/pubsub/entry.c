/* SPDX-License-Identifier: PostgreSQL */
#include "delivery.h"
#include "entry.h"
#include "service.h"
#include "subscription.h"

static void
time_up(struct timer *timer)
{
	struct entry *entry = OWNER(timer, struct entry, timer);

	if (entry->state == ENTRY_LEASED)
		delivery_expire(entry);
	else
		delivery_resume(entry);
}

static void
leave_state(struct entry *entry)
{
	link_remove(&entry->ready);
	timer_cancel(&entry->subscription->service->timers, &entry->timer);
	entry->subscription->count[entry->state]--;
}

void
entry_set_state(struct entry *entry, enum entry_state state, int64_t until)
{
	struct subscription *subscription = entry->subscription;

	leave_state(entry);
	entry->state = state;
	subscription->count[state]++;
	if (state == ENTRY_READY)
	{
		list_append(&subscription->ready, &entry->ready);
		subscription_wake(subscription);
	}
	if (state == ENTRY_LEASED || state == ENTRY_BACKOFF)
	{
		entry->timer.fire = time_up;
		timer_set(&subscription->service->timers, &entry->timer, until);
	}
}
