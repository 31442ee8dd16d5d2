/* SPDX-License-Identifier: PostgreSQL */
#include "scrape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "exposition.h"
#include "health.h"

/* ---- one sample, and families with one label ------------------------------------------------- */

static void
count(struct buffer *out, const char *name, uint64_t value, const char *help)
{
	exposition_begin(out, name, "counter", help);
	exposition_count(out, name, NULL, value);
}

static void
gauge(struct buffer *out, const char *name, double value, const char *help)
{
	exposition_begin(out, name, "gauge", help);
	exposition_value(out, name, NULL, value);
}

static void
add_one(struct buffer *out, const char *name, const char *label, const char *value, uint64_t number)
{
	exposition_count(out, name, (struct exposition_label[]){{label, value}, {NULL, NULL}}, number);
}

/* ---- messages --------------------------------------------------------------------------------- */

/* Without a label every verdict is there from the beginning, so that rates see the first one. */
static void
write_messages(const struct metrics *metrics, struct buffer *out)
{
	static const char name[] = "inbox_messages_total";

	exposition_begin(out, name, "counter", "Deliveries by what became of them.");
	for (enum metrics_verdict verdict = 0; verdict < METRICS_VERDICTS; verdict++)
	{
		for (size_t i = 0; i < metrics->label.count; i++)
		{
			struct exposition_label labels[] = {
				{"verdict", metrics_verdict_name(verdict)},
				{metrics->label.name, label_value(&metrics->label, i)},
				{NULL, NULL}};

			if (i == LABEL_NONE || metrics->messages[verdict][i] > 0)
			{
				exposition_count(out, name, labels, metrics->messages[verdict][i]);
			}
		}
	}
	count(out, "inbox_pulled_messages_total", metrics->pulled, "Messages that pulls brought.");
	count(out, "inbox_dead_letter_duplicates_total", metrics->dead_duplicates,
		  "Duplicates of the last 1024 messages that this process made dead letters.");
}

static void
write_failures(const struct metrics *metrics, struct buffer *out)
{
	static const char name[] = "inbox_failures_total";

	exposition_begin(out, name, "counter",
					 "Failed attempts of messages, and transactions that failed through no message,"
					 " by the first two characters of the SQLSTATE; none: it has none.");
	for (size_t i = 0; i < metrics->failure_classes; i++)
	{
		add_one(out, name, "sqlstate_class", metrics->failure_class[i], metrics->failures[i]);
	}
}

/* ---- Pub/Sub ----------------------------------------------------------------------------------- */

static void
write_pubsub(const struct puller *puller, int64_t now, struct buffer *out)
{
	static const char pulls[] = "inbox_pulls_total";
	static const char acks[] = "inbox_acks_total";
	const struct metrics *metrics = &puller->metrics;

	exposition_begin(out, pulls, "counter", "Answered pulls by what they brought.");
	add_one(out, pulls, "result", "messages", metrics->pulls[METRICS_PULL_FULL]);
	add_one(out, pulls, "result", "empty", metrics->pulls[METRICS_PULL_EMPTY]);
	add_one(out, pulls, "result", "failed", metrics->pulls[METRICS_PULL_FAILED]);
	gauge(out, "inbox_pulls_in_flight", puller->pull.in_flight, "Pulls under way.");
	exposition_begin(out, acks, "counter",
					 "Acknowledgements of messages by result; lost: the message comes again.");
	add_one(out, acks, "result", "ok", puller->ack.acked);
	add_one(out, acks, "result", "again", puller->ack.retried);
	add_one(out, acks, "result", "lost", puller->ack.lost);
	count(out, "inbox_lease_extensions_total", puller->lease.extended, "Extended leases.");
	count(out, "inbox_leases_expired_total", puller->lease.expired,
		  "Leases that ended while the message was held.");
	if (puller->auth.version > 0)
	{
		gauge(out, "inbox_token_age_seconds", (double) (now - puller->auth.taken_ms) / 1000,
			  "Since the access token for Pub/Sub was taken.");
	}
}

static void
write_outstanding(const struct message_board *board, struct buffer *out)
{
	static const char name[] = "inbox_outstanding_messages";
	static const char *const state[MESSAGE_STATES] = {
		[MESSAGE_READY] = "ready",	 [MESSAGE_RUNNING] = "running",		[MESSAGE_COMMITTED] = NULL,
		[MESSAGE_ACKING] = "acking", [MESSAGE_RETURNING] = "returning",
	};

	exposition_begin(out, name, "gauge", "Messages held, by what they wait for.");
	for (size_t i = 0; i < MESSAGE_STATES; i++)
	{
		if (state[i] != NULL)
		{
			add_one(out, name, "state", state[i], board->count[i]);
		}
	}
	gauge(out, "inbox_outstanding_bytes", (double) board->held_bytes, "Memory of messages held.");
}

/* ---- the database ------------------------------------------------------------------------------ */

static void
write_transactions(const struct metrics *metrics, struct buffer *out)
{
	static const char name[] = "inbox_transactions_total";

	exposition_begin(out, name, "counter", "Transactions with messages by how they ended.");
	add_one(out, name, "outcome", "committed", metrics->committed);
	add_one(out, name, "outcome", "failed", metrics->failed);
	add_one(out, name, "outcome", "unknown", metrics->unknown);
	exposition_histogram(out, "inbox_batch_size_messages", "Messages in a committed transaction.",
						 &metrics->batch_size);
	exposition_histogram(out, "inbox_handler_seconds",
						 "Time a message took of its call, handlers and claims together.",
						 &metrics->handler);
	exposition_histogram(out, "inbox_transaction_seconds",
						 "Time of a transaction from BEGIN to the answer to its COMMIT.",
						 &metrics->transaction);
	exposition_histogram(out, "inbox_publish_to_commit_seconds",
						 "Age of a message when its verdict was durable.", &metrics->age);
}

static void
write_connections(const struct puller *puller, int64_t now, struct buffer *out)
{
	size_t connected = 0;

	for (int i = 0; i < puller->workers; i++)
	{
		connected += puller->worker[i].db.state >= DB_IDLE;
	}
	gauge(out, "inbox_database_connections", (double) connected, "Connections that are there.");
	count(out, "inbox_database_connects_total", puller->metrics.connected,
		  "Connections made to the database, reconnects among them.");
	count(out, "inbox_contentions_total", puller->contention.met,
		  "Batches that failed by a deadlock or a row lock.");
	gauge(out, "inbox_contention_exclusive",
		  puller->contention.exclusive && now < puller->contention.until,
		  "1 while batches run one at a time.");
	gauge(out, "inbox_source_halted", puller->halted, "1 while message after message fails.");
}

/* What inbox_status() said last; absent as long as it is not known. */
static void
write_status(const struct puller *puller, int64_t now, struct buffer *out)
{
	static const struct
	{
		const char *column;
		const char *name;
		const char *help;
	} gauges[] = {
		{"retrying", "inbox_retrying_messages", "Messages whose failure waits for its next try."},
		{"dead", "inbox_dead_letters", "Dead letters that nobody has settled."},
		{"parked", "inbox_parked_messages", "Messages behind a dead letter of their ordering key."},
		{"conflicts", "inbox_conflicts", "Conflicts that nobody has settled."},
		{"expired", "inbox_expired_messages", "Expired messages that nobody has settled."},
		{"blocked_keys", "inbox_blocked_ordering_keys", "Ordering keys that wait for a failure."},
		{"claims", "inbox_claims", "Keys remembered, an estimate."},
		{"claim_bytes", "inbox_claim_bytes", "Size of the keys remembered, an estimate."},
	};
	double value;

	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
	{
		if (look_number(puller, gauges[i].column, now, &value))
		{
			gauge(out, gauges[i].name, value, gauges[i].help);
		}
	}
	if (look_number(puller, "blocked_keys", now, &value))
	{
		double age = 0;

		/* Without a blocked key there is no age, and an alert wants a number. */
		look_number(puller, "blocked_age", now, &age);
		gauge(out, "inbox_blocked_ordering_key_age_seconds", age,
			  "Since the ordering key that waits longest was blocked; 0: none is.");
		gauge(out, "inbox_status_age_seconds", (double) (now - puller->look.known_ms) / 1000,
			  "Since the database was asked for what only it knows.");
	}
}

/* ---- the process ------------------------------------------------------------------------------- */

static void
write_health(const struct puller *puller, int64_t now, struct buffer *out)
{
	static const char name[] = "inbox_check";
	struct health health;

	health_look(puller, now, &health);
	gauge(out, "inbox_ready", health.ready, "1 when /readyz says so.");
	gauge(out, "inbox_healthy", health.ok, "1 when /healthz says so.");
	exposition_begin(out, name, "gauge", "The checks of /healthz: 1 is well.");
	for (size_t i = 0; i < HEALTH_CHECKS; i++)
	{
		add_one(out, name, "check", health.check[i].name, health.check[i].ok);
	}
}

/* In pages, from the kernel; 0 where /proc is not there. */
static double
read_resident(void)
{
	unsigned long long whole = 0;
	unsigned long long resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file != NULL)
	{
		if (fscanf(file, "%llu %llu", &whole, &resident) != 2)
		{
			resident = 0;
		}
		fclose(file);
	}
	return (double) resident * (double) sysconf(_SC_PAGESIZE);
}

static double
seconds(struct timeval time)
{
	return (double) time.tv_sec + (double) time.tv_usec / 1e6;
}

static void
write_process(const struct puller *puller, struct buffer *out)
{
	static const char cpu[] = "process_cpu_seconds_total";
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
	{
		exposition_begin(out, cpu, "counter", "Processor time used.");
		exposition_value(out, cpu, NULL, seconds(usage.ru_utime) + seconds(usage.ru_stime));
	}
	gauge(out, "process_resident_memory_bytes", read_resident(), "Memory that is resident.");
	gauge(out, "process_start_time_seconds", (double) puller->started_us / 1e6,
		  "When the process started, since 1970.");
}

static void
write_info(const struct puller *puller, struct buffer *out)
{
	static const char build[] = "inbox_build_info";
	static const char source[] = "inbox_source_info";
	const struct config *config = puller->config;

	exposition_begin(out, build, "gauge", "The version that runs.");
	add_one(out, build, "version", INBOX_VERSION, 1);
	exposition_begin(out, source, "gauge", "What is consumed, and into what.");
	exposition_count(out, source,
					 (struct exposition_label[]){{"source", config->source},
												 {"subscription", config->subscription},
												 {"handler", config->handler},
												 {NULL, NULL}},
					 1);
}

void
scrape_write(const struct puller *puller, int64_t now, struct buffer *out)
{
	write_info(puller, out);
	write_health(puller, now, out);
	write_messages(&puller->metrics, out);
	write_failures(&puller->metrics, out);
	write_transactions(&puller->metrics, out);
	write_pubsub(puller, now, out);
	write_outstanding(&puller->board, out);
	write_connections(puller, now, out);
	write_status(puller, now, out);
	write_process(puller, out);
}
