/* SPDX-License-Identifier: PostgreSQL */
#include "loop.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "flow.h"
#include "health.h"
#include "listen.h"
#include "log.h"
#include "notify.h"
#include "stop.h"

/* A turn that takes longer than this has blocked somewhere, and leases are at stake. */
#define SLOW_TURN_MS 100

static void
list_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGHUP);
}

void
loop_block_signals(void)
{
	sigset_t signals;

	list_signals(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	/* A peer that goes away while we write is an error of write(2), not an end. */
	signal(SIGPIPE, SIG_IGN);
}

static int
open_signals(void)
{
	sigset_t signals;
	int file;

	list_signals(&signals);
	file = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (file < 0)
	{
		perror("inbox-puller: could not open a signalfd");
		exit(3);
	}
	return file;
}

static void
read_signals(struct puller *puller, int file)
{
	struct signalfd_siginfo signal;

	while (read(file, &signal, sizeof(signal)) == (ssize_t) sizeof(signal))
	{
		if (signal.ssi_signo == SIGHUP)
		{
			config_reload(puller->config);
		}
		else if (puller->stopping)
		{
			log_event(LOG_WARNING, "stopped_at_once", "held", LOG_INT, (int64_t) puller->board.held,
					  NULL);
			puller_exit(puller, 0);
		}
		else
		{
			stop_begin(puller);
		}
	}
}

static void
take_connections(struct puller *puller)
{
	PGconn *connection;
	void *owner;

	while ((connection = connector_take(puller->connector, &owner)) != NULL)
	{
		db_connected(owner, connection);
	}
}

static int
timeout_until(int64_t deadline, int64_t now)
{
	if (deadline <= now)
	{
		return 0;
	}
	/* A minute at most, so that a clock that was set is noticed; a wake a minute costs nothing. */
	return deadline - now < 60000 ? (int) (deadline - now) : 60000;
}

static void
wait_for_something(struct puller *puller, int signals)
{
	struct curl_waitfd files[WORKERS_MAX + 4] = {
		{.fd = signals, .events = CURL_WAIT_POLLIN},
		{.fd = connector_fd(puller->connector), .events = CURL_WAIT_POLLIN},
	};
	unsigned count = 2;
	int64_t now = clock_ms();
	int64_t deadline = flow_deadline(puller, now);
	int64_t alive = notify_deadline(&puller->notify);

	deadline = alive < deadline ? alive : deadline;
	if (puller->listen != NULL)
	{
		int64_t sooner = listen_deadline(puller->listen, now);
		int descriptor = listen_descriptor(puller->listen);

		deadline = sooner < deadline ? sooner : deadline;
		files[count].fd = descriptor;
		files[count].events = CURL_WAIT_POLLIN;
		count += descriptor >= 0;
	}
	for (int i = 0; i <= puller->workers; i++)
	{
		short events;
		int socket =
			db_socket(i < puller->workers ? &puller->worker[i].db : &puller->purge.db, &events);

		if (socket >= 0)
		{
			files[count].fd = socket;
			files[count].events = CURL_WAIT_POLLIN | (events & POLLOUT ? CURL_WAIT_POLLOUT : 0);
			count++;
		}
	}
	http_wait(puller->http, files, count, timeout_until(deadline, now));
}

/* What is told of the time that has passed since the last turn. */
static void
note_time(struct puller *puller, int64_t now)
{
	log_step(false);
	notify_step(&puller->notify, puller, now);
	if (now >= puller->history.end_ms)
	{
		history_take(&puller->history, &puller->metrics, puller->board.held,
					 (int) health_state(puller, now), now);
	}
}

/* True when something ended after its turn to be seen: then there is nothing to wait for. */
static bool
turn(struct puller *puller, int signals)
{
	int64_t start = clock_ms();
	int64_t took;
	bool more;

	note_time(puller, start);
	read_signals(puller, signals);
	take_connections(puller);
	for (int i = 0; i < puller->workers; i++)
	{
		db_step(&puller->worker[i].db);
	}
	db_step(&puller->purge.db);
	http_step(puller->http);
	if (puller->listen != NULL)
	{
		listen_step(puller->listen, puller, clock_ms());
	}
	flow_step(puller, clock_ms());
	/* Starts what flow_step() has asked for, without waiting a turn. */
	more = http_step(puller->http);
	took = clock_ms() - start;
	if (took > SLOW_TURN_MS)
	{
		log_event(LOG_WARNING, "slow_turn", "took", LOG_SECONDS, took, "hint", LOG_TEXT,
				  "leases may end meanwhile; the machine is overloaded, or was suspended", NULL);
	}
	return more;
}

int
loop_run(struct puller *puller)
{
	int signals = open_signals();

	notify_init(&puller->notify);
	while (!puller->done)
	{
		if (!turn(puller, signals) && !puller->done)
		{
			wait_for_something(puller, signals);
		}
	}
	close(signals);
	return puller->exit_status;
}
