/* SPDX-License-Identifier: PostgreSQL */
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

#ifndef INBOX_VERSION
#define INBOX_VERSION "unknown"
#endif

static const struct
{
	const char *name;
	const char *value;
	size_t offset;
	const char *help;
} table[] = {
	{"listen", "HOST:PORT", offsetof(struct options, listen),
	 "where to listen; port 0 takes any free one (default 127.0.0.1:8085)"},
	{"port-file", "FILE", offsetof(struct options, port_file),
	 "write the port here once it is open; removed at the end"},
	{"pid-file", "FILE", offsetof(struct options, pid_file),
	 "write the process id here; removed at the end"},
	{"long-poll", "SECONDS", offsetof(struct options, long_poll),
	 "how long a pull waits for a message (default 90)"},
	{"token-file", "FILE", offsetof(struct options, token_file),
	 "let in only bearer tokens that are a line of this file"},
	{"tls-cert", "FILE", offsetof(struct options, tls_cert), "serve HTTPS with this certificate"},
	{"tls-key", "FILE", offsetof(struct options, tls_key), "the certificate's private key"},
	{"history", "FILE", offsetof(struct options, history),
	 "write what happens here, one JSON object a line"},
	{"faults", "FILE", offsetof(struct options, faults), "fault rules, as a JSON array"},
	{"seed", "NUMBER", offsetof(struct options, seed),
	 "what the probabilities of the rules are drawn from (default 0)"},
	{"fault-rate", "RATE", offsetof(struct options, fault_rate),
	 "add every kind of fault with this probability, 0 to 1"},
	{"lookup", "CONNINFO", offsetof(struct options, lookup),
	 "look every acknowledged key up in this PostgreSQL database"},
	{"lookup-standby", "CONNINFO", offsetof(struct options, lookup_standby),
	 "and in this standby, once it has replayed what was flushed then"},
	{"lookup-sql", "SQL", offsetof(struct options, lookup_sql),
	 "gives the keys that are there, of $1 text[] (with message ids $2 text[])"},
	{"lookup-key", "ATTRIBUTE", offsetof(struct options, lookup_key),
	 "the attribute that holds the key (default idempotency_key)"},
};

#define COUNT (sizeof(table) / sizeof(table[0]))

static void
print_help(void)
{
	puts("inbox-pubsub: a Google Cloud Pub/Sub server (REST) for tests, with faults on demand\n\n"
		 "Usage: inbox-pubsub [OPTION]...\n");
	for (size_t i = 0; i < COUNT; i++)
		printf("  --%s %s\n        %s\n", table[i].name, table[i].value, table[i].help);
	puts("  --help\n  --version\n\n"
		 "It prints one line, \"listening on URL\", when it is ready, and stops on SIGTERM.");
}

int
options_parse(struct options *options, int argc, char **argv)
{
	struct option longs[COUNT + 3] = {{0}};
	int found;

	for (size_t i = 0; i < COUNT; i++)
		longs[i] = (struct option){table[i].name, required_argument, NULL, (int) i};
	longs[COUNT] = (struct option){"help", no_argument, NULL, COUNT};
	longs[COUNT + 1] = (struct option){"version", no_argument, NULL, COUNT + 1};
	while ((found = getopt_long(argc, argv, "", longs, NULL)) >= 0 && found < (int) COUNT)
		*(const char **) ((char *) options + table[found].offset) = optarg;
	if (found == (int) COUNT)
		print_help();
	else if (found == (int) COUNT + 1)
		puts("inbox-pubsub " INBOX_VERSION);
	else if (found < 0 && optind == argc)
		return -1;
	else
	{
		fputs("Try inbox-pubsub --help.\n", stderr);
		return 1;
	}
	return 0;
}
