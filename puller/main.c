/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "config.h"
#include "listen.h"
#include "log.h"
#include "loop.h"
#include "puller.h"
#include "seek.h"

static void
log_end(const struct puller *puller, int status)
{
	const struct metrics *metrics = &puller->metrics;

	log_event(LOG_INFO, "stopped", "status", LOG_INT, (int64_t) status, "pulled", LOG_INT,
			  (int64_t) metrics->pulled, "applied", LOG_INT,
			  (int64_t) metrics_total(metrics, METRICS_APPLIED), "duplicate", LOG_INT,
			  (int64_t) metrics_total(metrics, METRICS_DUPLICATE), "conflict", LOG_INT,
			  (int64_t) metrics_total(metrics, METRICS_CONFLICT), "dead", LOG_INT,
			  (int64_t) metrics_total(metrics, METRICS_DEAD), "retrying", LOG_INT,
			  (int64_t) (metrics_total(metrics, METRICS_RETRYING) +
						 metrics_total(metrics, METRICS_HALTED)),
			  "acked", LOG_INT, (int64_t) puller->ack.acked, "acks_lost", LOG_INT,
			  (int64_t) puller->ack.lost, "unknown", LOG_INT, (int64_t) metrics->unknown, NULL);
}

int
main(int argc, char **argv)
{
	static struct puller puller;
	struct config config;
	int status;

	switch (config_load(&config, argc, argv))
	{
		case CONFIG_DONE:
			return 0;
		case CONFIG_BAD:
			return 1;
		case CONFIG_RUN:
			break;
	}
	if (config.check)
	{
		status = config.seek != NULL ? seek_run(&config, stdout) : check_run(&config, stdout);
		config_free(&config);
		return status;
	}
	/* Who has read a line of the log may send a signal. */
	loop_block_signals();
	log_configure(config.log_format, config.log_level);
	config_log(&config);
	srandom((unsigned) (time(NULL) ^ (getpid() << 16)));
	puller_init(&puller, &config);
	if (config.listen != NULL && (puller.listen = listen_new(config.listen)) == NULL)
	{
		return 1;
	}
	log_watch(trouble_see, &puller.troubles);
	log_event(LOG_INFO, "started", "version", LOG_TEXT, INBOX_VERSION, "subscription", LOG_TEXT,
			  config.subscription, "endpoint", LOG_TEXT, config.endpoint, "source", LOG_TEXT,
			  config.source, "handler", LOG_TEXT, config.handler, "workers", LOG_INT,
			  (int64_t) config.workers, NULL);
	status = loop_run(&puller);
	log_step(true);
	log_end(&puller, status);
	if (config.shadow)
	{
		shadow_report(&puller, stdout);
	}
	puller_free(&puller);
	config_free(&config);
	return status;
}
