/* SPDX-License-Identifier: PostgreSQL */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>
#include <json-c/linkhash.h>

#include "body.h"
#include "control.h"
#include "fault.h"
#include "history.h"
#include "lookup.h"
#include "permission.h"
#include "problem.h"
#include "request.h"
#include "service.h"
#include "subscription.h"

static struct json_object *
render_counters(const struct counters *counters)
{
	const struct
	{
		const char *name;
		uint64_t value;
	} all[] = {
		{"requests", counters->requests},	{"pulls", counters->pulls},
		{"published", counters->published}, {"delivered", counters->delivered},
		{"acked", counters->acked},			{"ignored", counters->ignored},
		{"nacked", counters->nacked},		{"extended", counters->extended},
		{"expired", counters->expired},		{"deadLettered", counters->dead_lettered},
	};
	struct json_object *object = json_object_new_object();

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		json_object_object_add(object, all[i].name, json_object_new_uint64(all[i].value));
	return object;
}

static struct json_object *
render_subscription(const struct subscription *subscription)
{
	static const char *const names[ENTRY_STATES] = {
		[ENTRY_WAITING] = "waiting", [ENTRY_READY] = "ready", [ENTRY_LEASED] = "leased",
		[ENTRY_BACKOFF] = "backoff", [ENTRY_ACKED] = "acked",
	};
	struct json_object *object = json_object_new_object();
	size_t unacked = 0;
	int pulls = 0;

	for (int state = 0; state < ENTRY_STATES; state++)
	{
		json_object_object_add(object, names[state],
							   json_object_new_uint64(subscription->count[state]));
		unacked += state == ENTRY_ACKED ? 0 : subscription->count[state];
	}
	for (struct link *link = subscription->waiting.next; link != &subscription->waiting;
		 link = link->next)
		pulls++;
	json_object_object_add(object, "unacked", json_object_new_uint64(unacked));
	json_object_object_add(object, "waitingPulls", json_object_new_int(pulls));
	return object;
}

static void
stats(struct request *request)
{
	struct service *service = request->service;
	struct json_object *object = json_object_new_object();
	struct json_object *subscriptions = json_object_new_object();
	struct lh_entry *entry;

	lh_foreach(service->subscriptions, entry)
	{
		const struct subscription *subscription = lh_entry_v(entry);

		json_object_object_add(subscriptions, subscription->name,
							   render_subscription(subscription));
	}
	json_object_object_add(object, "counters", render_counters(&service->counters));
	json_object_object_add(object, "subscriptions", subscriptions);
	json_object_object_add(object, "faults", faults_render(service->faults));
	if (service->lookup != NULL)
		json_object_object_add(object, "lookup", lookup_render(service->lookup));
	request_reply(request, object);
}

static void
show_faults(struct request *request)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "rules", faults_render(request->service->faults));
	request_reply(request, object);
}

/* {"rules": […], "seed": N, "rate": R}, each of them optional. */
static void
add_faults(struct request *request)
{
	static const char *const names[] = {"rules", "seed", "rate", NULL};
	struct faults *faults = request->service->faults;
	struct json_object *object = request_object(request);
	struct json_object *rules = NULL;
	struct json_object *rate;
	struct problem problem = {0};
	int64_t seed = 0;

	if (object == NULL)
		return;
	if (!body_known(object, names, &problem) || !body_take_int(object, "seed", &seed, &problem) ||
		!body_take_array(object, "rules", &rules, &problem))
		request_reply_problem(request, &problem);
	else
	{
		if (body_member(object, "seed") != NULL)
			faults_seed(faults, (uint64_t) seed);
		rate = body_member(object, "rate");
		if (rate != NULL)
			faults_add_all_kinds(faults, json_object_get_double(rate));
		if (rules != NULL && !faults_add(faults, rules, &problem))
			request_reply_problem(request, &problem);
		else
			show_faults(request);
	}
	json_object_put(object);
}

static void
clear_faults(struct request *request)
{
	faults_clear(request->service->faults);
	request_reply_empty(request);
}

/* The whole file; a test reads it directly where it can. */
static void
show_history(struct request *request)
{
	struct problem problem = {0};
	char block[65536];
	FILE *file = NULL;
	size_t len;

	if (request->service->history != NULL)
	{
		history_flush(request->service->history);
		file = fopen(history_path(request->service->history), "re");
	}
	if (file == NULL)
	{
		problem_set(&problem, STATUS_NOT_FOUND,
					"There is no history: start the server with --history FILE.");
		request_reply_problem(request, &problem);
		return;
	}
	while ((len = fread(block, 1, sizeof(block), file)) > 0)
		buf_add(&request->answer, block, len);
	fclose(file);
	request_reply_text(request, 200, "application/jsonl");
}

void
control_handle(struct request *request)
{
	static const struct
	{
		const char *method;
		const char *path;
		handler handle;
	} routes[] = {
		{"GET", "/control/stats", stats},
		{"GET", "/control/faults", show_faults},
		{"POST", "/control/faults", add_faults},
		{"DELETE", "/control/faults", clear_faults},
		{"GET", "/control/history", show_history},
		{"POST", "/control/permissions", permission_deny},
	};
	struct problem problem = {0};

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
	{
		if (strcmp(request->method, routes[i].method) == 0 &&
			strcmp(request->path, routes[i].path) == 0)
		{
			routes[i].handle(request);
			return;
		}
	}
	problem_set(&problem, STATUS_NOT_FOUND,
				"There are GET /control/stats, GET, POST and DELETE /control/faults, GET "
				"/control/history, and POST /control/permissions.");
	request_reply_problem(request, &problem);
}
