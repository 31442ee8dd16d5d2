/* SPDX-License-Identifier: PostgreSQL */
/*
 * Runs the same payments through two statements, by turns of a few transactions, so that whatever
 * else the machine does meets both alike:
 *
 *	driver --dbname CONNINFO --statement SQL --statement SQL [--keys KIND] [--rounds N]
 *		[--first N] [--warm N] [--batches N] [--size N] [--payload BYTES] [--accounts N]
 *		[--in-order] [--changed]
 *
 * $1 is an array of inbox_message; with --columns instead of --statement $1 to $3 are the columns
 * of their claims. Each statement has a connection of its own; it is the first one in every second
 * round, unless --in-order says otherwise. With --changed the second one's payloads conflict.
 * Everything is built before the clock starts. Prints a line a round, with for each statement:
 * messages a second, microseconds of the backend's processor time a message.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memory.h"
#include "payment.h"
#include "session.h"

#define PARAMETER_LIMIT ((size_t) 1 << 30)
#define LANES 2

struct lane
{
	const char *statement;
	bool columns;
	struct session session;
};

struct speed
{
	double rate;
	double cpu;
};

struct task
{
	const char *dbname;
	struct lane lane[LANES];
	int lanes;
	bool in_order; /* the second statement is never the first */
	bool changed;  /* it gets other payloads for the same keys */
	struct payment_kind kind;
	size_t first; /* payment */
	size_t rounds;
	size_t warm;	/* further rounds, before those that count */
	size_t batches; /* transactions of one statement in a round */
	size_t size;	/* messages in a transaction */
};

static const struct option options[] = {
	{"dbname", required_argument, NULL, 'd'},	{"statement", required_argument, NULL, 's'},
	{"columns", required_argument, NULL, 'c'},	{"in-order", no_argument, NULL, 'i'},
	{"changed", no_argument, NULL, 'x'},		{"keys", required_argument, NULL, 'k'},
	{"first", required_argument, NULL, 'f'},	{"rounds", required_argument, NULL, 'r'},
	{"warm", required_argument, NULL, 'w'},		{"batches", required_argument, NULL, 'b'},
	{"size", required_argument, NULL, 'n'},		{"payload", required_argument, NULL, 'p'},
	{"accounts", required_argument, NULL, 'a'}, {NULL, 0, NULL, 0}};

static size_t
number(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0')
	{
		fprintf(stderr, "driver: \"%s\" is not a number\n", text);
		exit(1);
	}
	return (size_t) value;
}

static enum payment_keys
keys_named(const char *name)
{
	static const char *const names[] = {[PAYMENT_ORDERED] = "ordered",
										[PAYMENT_RANDOM] = "random",
										[PAYMENT_UUID7] = "uuid7",
										[PAYMENT_COUNTER] = "counter"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		if (strcmp(name, names[i]) == 0)
		{
			return (enum payment_keys) i;
		}
	}
	fprintf(stderr, "driver: there are no keys \"%s\"\n", name);
	exit(1);
}

static void
add_lane(struct task *task, const char *statement, bool columns)
{
	if (task->lanes == LANES)
	{
		fprintf(stderr, "driver: more than %d statements\n", LANES);
		exit(1);
	}
	task->lane[task->lanes++] = (struct lane){.statement = statement, .columns = columns};
}

static void
take_option(struct task *task, int option)
{
	switch (option)
	{
		case 'd':
			task->dbname = optarg;
			break;
		case 's':
		case 'c':
			add_lane(task, optarg, option == 'c');
			break;
		case 'i':
			task->in_order = true;
			break;
		case 'x':
			task->changed = true;
			break;
		case 'k':
			task->kind.keys = keys_named(optarg);
			break;
		case 'f':
			task->first = number(optarg);
			break;
		case 'r':
			task->rounds = number(optarg);
			break;
		case 'w':
			task->warm = number(optarg);
			break;
		case 'b':
			task->batches = number(optarg);
			break;
		case 'n':
			task->size = number(optarg);
			break;
		case 'p':
			task->kind.payload = number(optarg);
			break;
		case 'a':
			task->kind.accounts = (unsigned) number(optarg);
			break;
		default:
			exit(1); /* getopt_long() has said why */
	}
}

/* ---- parameters ------------------------------------------------------------------------- */

static void
fill(const struct task *task, const struct lane *lane, uint64_t first,
	 struct session_parameters *parameters)
{
	struct payment_kind kind = task->kind;

	kind.changed = task->changed && lane != task->lane;
	parameters->count = lane->columns ? PAYMENT_COLUMNS : 1;
	for (int i = 0; i < parameters->count; i++)
	{
		struct buffer *value = &parameters->value[i];

		buffer_init(value, PARAMETER_LIMIT);
		if (lane->columns)
		{
			payment_column(value, i, &kind, first, task->size);
		}
		else
		{
			payment_messages(value, lane->session.message_type, &kind, first, task->size);
		}
	}
}

/* Of all transactions of one round, for one statement. */
static struct session_parameters *
build(const struct task *task, const struct lane *lane, size_t round)
{
	struct session_parameters *parameters = memory_new(task->batches * sizeof(*parameters));

	for (size_t i = 0; i < task->batches; i++)
	{
		fill(task, lane, task->first + (round * task->batches + i) * task->size, &parameters[i]);
	}
	return parameters;
}

static void
discard(const struct task *task, struct session_parameters *parameters)
{
	for (size_t i = 0; i < task->batches; i++)
	{
		for (int j = 0; j < parameters[i].count; j++)
		{
			buffer_free(&parameters[i].value[j]);
		}
	}
	free(parameters);
}

/* ---- rounds ----------------------------------------------------------------------------- */

static double
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

static struct speed
run(const struct task *task, struct lane *lane, const struct session_parameters *parameters)
{
	double messages = (double) (task->batches * task->size);
	uint64_t cpu = session_cpu(&lane->session);
	double start = seconds_now();
	struct speed speed;

	for (size_t i = 0; i < task->batches; i++)
	{
		session_run(&lane->session, &parameters[i]);
	}
	speed.rate = messages / (seconds_now() - start);
	speed.cpu = (double) (session_cpu(&lane->session) - cpu) / 1000 / messages;
	return speed;
}

static void
run_round(struct task *task, size_t round)
{
	struct session_parameters *parameters[LANES];
	struct speed speed[LANES];

	for (int i = 0; i < LANES; i++)
	{
		parameters[i] = build(task, &task->lane[i], round);
	}
	for (int i = 0; i < LANES; i++)
	{
		int turn = task->in_order || round % 2 == 0 ? i : LANES - 1 - i;

		speed[turn] = run(task, &task->lane[turn], parameters[turn]);
	}
	for (int i = 0; i < LANES; i++)
	{
		discard(task, parameters[i]);
	}
	if (round >= task->warm)
	{
		printf("%.0f %.2f %.0f %.2f\n", speed[0].rate, speed[0].cpu, speed[1].rate, speed[1].cpu);
	}
}

int
main(int argc, char **argv)
{
	struct task task = {.kind = {PAYMENT_ORDERED, 200, 10000, false},
						.rounds = 50,
						.warm = 5,
						.batches = 5,
						.size = 200};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
	{
		take_option(&task, option);
	}
	if (task.dbname == NULL || task.lanes != LANES || task.batches == 0 || task.size == 0)
	{
		fprintf(stderr, "driver: --dbname, two statements and some batches are needed\n");
		return 1;
	}
	for (int i = 0; i < LANES; i++)
	{
		session_open(&task.lane[i].session, task.dbname, task.lane[i].statement);
	}
	for (size_t round = 0; round < task.warm + task.rounds; round++)
	{
		run_round(&task, round);
	}
	for (int i = 0; i < LANES; i++)
	{
		session_close(&task.lane[i].session);
	}
	return 0;
}
