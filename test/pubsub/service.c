/* SPDX-License-Identifier: PostgreSQL */
#include <string.h>
#include <sys/random.h>

#include <json-c/json.h>
#include <json-c/linkhash.h>

#include "moment.h"
#include "pull.h"
#include "service.h"
#include "snapshot.h"
#include "subscription.h"
#include "topic.h"

#define SWEEP_PERIOD (10 * SECOND)

static void
sweep(struct timer *timer)
{
	struct service *service = OWNER(timer, struct service, sweep);
	int64_t now = moment_now();
	struct lh_entry *entry;

	lh_foreach(service->topics, entry)
	{
		topic_trim((struct topic *) lh_entry_v(entry), now);
	}
	lh_foreach(service->subscriptions, entry)
	{
		subscription_trim((struct subscription *) lh_entry_v(entry), now);
	}
	timer_set(&service->timers, timer, timer_now() + SWEEP_PERIOD);
}

void
service_init(struct service *service)
{
	memset(service, 0, sizeof(*service));
	service->topics = lh_kchar_table_new(16, NULL);
	service->subscriptions = lh_kchar_table_new(16, NULL);
	service->snapshots = lh_kchar_table_new(16, NULL);
	list_init(&service->hungry);
	service->long_poll = 90 * SECOND;
	service->sweep.fire = sweep;
	timer_set(&service->timers, &service->sweep, timer_now() + SWEEP_PERIOD);
	if (getrandom(&service->ack_secret, sizeof(service->ack_secret), 0) < 0)
		service->ack_secret = (uint64_t) timer_now();
}

void
service_settle(struct service *service)
{
	while (!list_empty(&service->hungry))
	{
		struct subscription *subscription =
			OWNER(service->hungry.next, struct subscription, hungry);

		link_remove(&subscription->hungry);
		pull_serve(subscription);
	}
}

void
service_free(struct service *service)
{
	struct lh_entry *entry;

	while ((entry = service->snapshots->head) != NULL)
		snapshot_free((struct snapshot *) lh_entry_v(entry));
	while ((entry = service->subscriptions->head) != NULL)
		subscription_free((struct subscription *) lh_entry_v(entry));
	while ((entry = service->topics->head) != NULL)
		topic_free((struct topic *) lh_entry_v(entry));
	json_object_put(service->denied);
	lh_table_free(service->snapshots);
	lh_table_free(service->subscriptions);
	lh_table_free(service->topics);
	timers_free(&service->timers);
}
