/* SPDX-License-Identifier: PostgreSQL */
#include "puller.h"

#include <stdlib.h>

#include "clock.h"
#include "flow.h"
#include "listen.h"
#include "pull.h"
#include "work.h"

void
puller_init(struct puller *puller, struct config *config)
{
	*puller = (struct puller){
		.config = config,
		.workers = config->workers,
		.batch_limit = 1,
		.probe = {.first_ms = 1000, .limit_ms = 30000},
		.db_down_since = CLOCK_NEVER,
	};
	puller->http = http_new();
	http_trust(puller->http, config->ca_file);
	auth_init(&puller->auth, puller->http, config);
	pubsub_init(&puller->pubsub, puller->http, &puller->auth, config);
	puller->connector = connector_new(config->dbname);
	message_board_init(&puller->board);
	lease_init(&puller->lease, &puller->board, &puller->pubsub, config);
	ack_init(&puller->ack, &puller->board, &puller->pubsub);
	contention_init(&puller->contention);
	metrics_init(&puller->metrics, config->label);
	history_init(&puller->history, clock_ms());
	puller->started_us = clock_real_us();
	pull_init(puller);
	for (int i = 0; i < puller->workers; i++)
	{
		struct worker *worker = &puller->worker[i];

		worker->puller = puller;
		worker->backoff = (struct backoff){.first_ms = 100, .limit_ms = 10000};
		db_init(&worker->db, i + 1, config, puller->connector, &flow_db_events, worker);
	}
	purge_init(puller);
}

static void
free_messages(struct message_board *board)
{
	for (int state = 0; state < MESSAGE_STATES; state++)
	{
		while (!TAILQ_EMPTY(&board->list[state]))
		{
			message_forget(board, TAILQ_FIRST(&board->list[state]));
		}
	}
}

void
puller_free(struct puller *puller)
{
	for (int i = 0; i < puller->workers; i++)
	{
		work_free(&puller->worker[i]);
		db_free(&puller->worker[i].db);
	}
	free_messages(&puller->board);
	purge_free(&puller->purge);
	shadow_free(&puller->shadow);
	listen_free(puller->listen);
	connector_free(puller->connector);
	http_free(puller->http);
	pubsub_free(&puller->pubsub);
	auth_free(&puller->auth);
	metrics_free(&puller->metrics);
	look_free(&puller->look);
	free(puller->system_id);
	free(puller->timeline);
}

void
puller_exit(struct puller *puller, int status)
{
	if (!puller->done)
	{
		puller->done = true;
		puller->exit_status = status;
	}
}
