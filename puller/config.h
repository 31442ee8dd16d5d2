/* SPDX-License-Identifier: PostgreSQL */
/*
 * The options of the puller. One table (config.c) gives the flags, the INBOX_* environment, the
 * ini file, --help and the sample file; flag > environment > file > default.
 */
#ifndef INBOX_CONFIG_H
#define INBOX_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "key.h"
#include "log.h"

/* The value of --seek that is no time. */
#define SEEK_RESTORE_POINT "restore-point"

struct config_origin;

/* Where the password of a database connection comes from. */
enum db_auth
{
	DB_AUTH_LIBPQ,	/* libpq's own places */
	DB_AUTH_GCP_IAM /* a fresh access token for each connection */
};

struct config
{
	/* what is consumed, and into what */
	char *subscription;	   /* projects/P/subscriptions/S */
	char *handler;		   /* f, s.f or f(jsonb) */
	char *source;		   /* default: the subscription */
	struct key_rules keys; /* default: attribute:idempotency_key */
	bool take_over;
	bool shadow;		  /* every transaction ends in ROLLBACK, and is reported */
	bool as_dead_letters; /* no handler: every message becomes a dead letter of "source" */

	/* Pub/Sub */
	char *endpoint;			/* https://pubsub.googleapis.com; http://$PUBSUB_EMULATOR_HOST */
	bool emulator;			/* from PUBSUB_EMULATOR_HOST: no credentials are sent */
	char *token_file;		/* bearer token, read again when it changes or is refused */
	char *credentials_file; /* or NULL: they are searched for */
	char *ca_file;			/* the only authorities trusted, or NULL: the system's */
	int pulls;				/* 8 */
	int64_t max_response;	/* bytes, 64 MB */
	int64_t max_lease;		/* ms, 60 min */

	/* database */
	char *dbname; /* conninfo or URI, or NULL for libpq's own defaults */
	enum db_auth db_auth;
	int workers;			 /* 1 */
	int64_t handler_timeout; /* ms, 30 s */
	int64_t lock_timeout;	 /* ms, 5 s: a row or key another transaction holds */
	int64_t db_grace;		 /* ms, 120 s */

	/* batches */
	int batch_size;		 /* 200 */
	int64_t batch_bytes; /* 16 MB */
	int64_t batch_time;	 /* ms, 500 */
	char *lock_group;	 /* NULL: the source's own */

	/* running */
	int64_t grace;		 /* ms, 25 s */
	int halt_after;		 /* 20 */
	int64_t purge_every; /* ms, 0: never */
	bool exit_on_permanent;
	bool check;		   /* look at everything, and end */
	bool check_json;   /* as a document for machines */
	const char *seek;  /* a time or SEEK_RESTORE_POINT, to be looked at, and to end; NULL: no */
	bool seek_yes;	   /* and to seek */
	char *listen;	   /* ADDR:PORT for metrics, health and the page; NULL: nowhere */
	char *label;	   /* attribute:NAME that messages are counted by, or NULL */
	bool log_payloads; /* of messages that fail */
	enum log_format log_format;
	enum log_level log_level;

	struct config_origin *origin; /* flags and file, for config_reload() */
};

enum config_outcome
{
	CONFIG_RUN,	 /* go on */
	CONFIG_DONE, /* --help or --version was answered: exit 0 */
	CONFIG_BAD	 /* the message has been written: exit 1 */
};

/*
 * Fills "config" from defaults, file (--config, INBOX_CONFIG), environment and flags, and checks
 * it as a whole. Messages go to stderr. "config" needs no initialisation, and no config_free()
 * unless the outcome is CONFIG_RUN. argv must live as long as the configuration.
 */
enum config_outcome config_load(struct config *config, int argc, char **argv);

/* Logs the whole configuration as one event, without secrets. */
void config_log(const struct config *config);

/*
 * Reads the file and the environment again (SIGHUP). Takes over what may change while running
 * and logs each change; logs what would need a restart. A file that is not valid changes nothing.
 * Sets the format and the level of the log, too.
 */
void config_reload(struct config *config);

void config_free(struct config *config);

#endif
