/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_OPTIONS_H
#define PUBSUB_OPTIONS_H

#include <stdbool.h>

/* The command line. Texts are those of argv; NULL where an option was not given. */
struct options
{
	const char *listen;
	const char *port_file;
	const char *pid_file;
	const char *long_poll;
	const char *token_file;
	const char *tls_cert;
	const char *tls_key;
	const char *history;
	const char *faults;
	const char *seed;
	const char *fault_rate;
	const char *lookup;
	const char *lookup_standby;
	const char *lookup_sql;
	const char *lookup_key;
};

/* Returns -1 to go on, or the code to exit with: after --help, --version or a wrong usage. */
int options_parse(struct options *options, int argc, char **argv);

#endif
