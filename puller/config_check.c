/* SPDX-License-Identifier: PostgreSQL */
#include "config_check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"
#include "label.h"
#include "listen_address.h"
#include "memory.h"
#include "utf8.h"

#define SOURCE_MAX_BYTES 1024

/* ---- the name of the subscription --------------------------------------------------------- */

#define ALPHANUMERIC "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define ID_CHARACTERS ALPHANUMERIC "-_.~+%"
#define PROJECT_CHARACTERS ALPHANUMERIC "-_.:" /* example.com:project is an old form */

/* NULL, or what is wrong with a subscription's id. */
static const char *
check_id(const char *id)
{
	size_t size = strlen(id);

	if (size < 3 || size > 255)
	{
		return "its last part must have 3 to 255 characters";
	}
	if (!isalpha((unsigned char) id[0]))
	{
		return "its last part must begin with a letter";
	}
	if (strspn(id, ID_CHARACTERS) != size)
	{
		return "its last part may hold letters, digits and - _ . ~ + % only";
	}
	if (strncmp(id, "goog", 4) == 0)
	{
		return "its last part must not begin with \"goog\", which Pub/Sub keeps for itself";
	}
	return NULL;
}

/* NULL, or what is wrong with the full name. */
static const char *
check_name(const char *name)
{
	static const char projects[] = "projects/";
	static const char subscriptions[] = "/subscriptions/";
	size_t project_size;
	const char *rest;

	if (strchr(name, '/') == NULL)
	{
		return "it is a bare name";
	}
	if (strstr(name, "/topics/") != NULL)
	{
		return "it names a topic, and messages come from a subscription to it";
	}
	if (strncmp(name, projects, strlen(projects)) != 0)
	{
		return "it does not begin with projects/";
	}
	name += strlen(projects);
	project_size = strspn(name, PROJECT_CHARACTERS);
	rest = name + project_size;
	if (project_size == 0 || strncmp(rest, subscriptions, strlen(subscriptions)) != 0)
	{
		return "a project and /subscriptions/ must follow projects/";
	}
	return check_id(rest + strlen(subscriptions));
}

static bool
check_subscription(const struct config *config, struct fault *fault)
{
	const char *wrong;

	if (config->subscription == NULL)
	{
		return (config->check && config->seek == NULL) ||
			   fault_set(fault, memory_copy_text("no subscription is given"),
						 memory_copy_text("Give --subscription "
										  "projects/PROJECT/subscriptions/NAME; inbox-puller "
										  "--help lists the options."));
	}
	wrong = check_name(config->subscription);
	if (wrong != NULL)
	{
		return fault_set(fault,
						 memory_format("--subscription \"%s\" is not a subscription: %s",
									   config->subscription, wrong),
						 memory_copy_text("Write its full name, "
										  "projects/PROJECT/subscriptions/NAME."));
	}
	return true;
}

/* ---- handler and source ------------------------------------------------------------------- */

static bool
check_handler(const struct config *config, struct fault *fault)
{
	if (config->as_dead_letters && config->shadow)
	{
		return fault_set(fault,
						 memory_copy_text("--shadow has nothing to run with "
										  "--as-dead-letters"),
						 memory_copy_text("Leave out one of them."));
	}
	if (config->shadow && config->take_over)
	{
		return fault_set(fault, memory_copy_text("--shadow takes nothing over"),
						 memory_copy_text("Leave out --take-over."));
	}
	if (config->as_dead_letters)
	{
		return config->handler == NULL ||
			   fault_set(fault, memory_copy_text("--as-dead-letters runs no handler"),
						 memory_copy_text("Leave out --handler, or --as-dead-letters."));
	}
	if (config->handler == NULL)
	{
		return config->check ||
			   fault_set(fault, memory_copy_text("no handler is given"),
						 memory_copy_text("Give --handler FUNCTION, the SQL function that applies "
										  "a message."));
	}
	if (!utf8_valid(config->handler, strlen(config->handler)))
	{
		return fault_set(fault, memory_copy_text("--handler is not valid UTF-8"),
						 memory_copy_text("Write the function's name in UTF-8."));
	}
	return true;
}

static bool
settle_source(struct config *config, struct fault *fault)
{
	size_t size;

	if (config->source == NULL && config->as_dead_letters && !config->check)
	{
		return fault_set(
			fault, memory_copy_text("--as-dead-letters needs --source"),
			memory_copy_text("Name the source that consumes the original subscription: "
							 "its keys tell which messages were applied after all. By "
							 "default it is that subscription's full name."));
	}
	if (config->source == NULL && !config->as_dead_letters)
	{
		config->source = memory_copy_text(config->subscription);
	}
	if (config->source == NULL)
	{
		return true;
	}
	size = strlen(config->source);
	if (size > SOURCE_MAX_BYTES)
	{
		return fault_set(fault,
						 memory_format("--source has %zu bytes, more than the %d allowed", size,
									   SOURCE_MAX_BYTES),
						 memory_copy_text("Choose a shorter name; it is never cut."));
	}
	if (!utf8_valid(config->source, size))
	{
		return fault_set(fault, memory_copy_text("--source is not valid UTF-8"),
						 memory_copy_text("Write the name in UTF-8."));
	}
	return true;
}

/* ---- database ----------------------------------------------------------------------------- */

static bool
is_connection_string(const char *dbname)
{
	return strncmp(dbname, "postgresql://", 13) == 0 || strncmp(dbname, "postgres://", 11) == 0 ||
		   strchr(dbname, '=') != NULL;
}

static PQconninfoOption *
parse_bare_name(const char *dbname)
{
	PQconninfoOption *parts = PQconninfoParse("", NULL);

	for (PQconninfoOption *part = parts; part != NULL && part->keyword != NULL; part++)
	{
		if (strcmp(part->keyword, "dbname") == 0)
		{
			part->val = strdup(dbname);
		}
	}
	return parts;
}

PQconninfoOption *
config_parse_dbname(const char *dbname)
{
	return is_connection_string(dbname) ? PQconninfoParse(dbname, NULL) : parse_bare_name(dbname);
}

/* libpq's own message quotes what it stumbled over, which may be part of the password. */
static bool
check_dbname(const struct config *config, struct fault *fault)
{
	PQconninfoOption *parts;

	if (config->dbname == NULL)
	{
		return true;
	}
	parts = config_parse_dbname(config->dbname);
	PQconninfoFree(parts);
	if (parts == NULL)
	{
		return fault_set(fault,
						 memory_copy_text("--dbname is not a connection string libpq can parse; it "
										  "is not shown, as it may hold a password"),
						 memory_copy_text("Write a database name, keyword = value pairs such as "
										  "'host=db1 dbname=ledger', or a postgresql:// URI."));
	}
	return true;
}

/* A token is a password that must not travel in the clear. */
static bool
check_tls(const struct config *config, struct fault *fault)
{
	PQconninfoOption *parts = config->dbname != NULL ? config_parse_dbname(config->dbname) : NULL;
	bool plain = false;

	for (PQconninfoOption *part = parts; part != NULL && part->keyword != NULL; part++)
	{
		plain |= strcmp(part->keyword, "sslmode") == 0 && part->val != NULL &&
				 (strcmp(part->val, "disable") == 0 || strcmp(part->val, "allow") == 0 ||
				  strcmp(part->val, "prefer") == 0);
	}
	PQconninfoFree(parts);
	if (config->db_auth == DB_AUTH_GCP_IAM && plain)
	{
		return fault_set(fault,
						 memory_copy_text("--db-auth gcp-iam sends a token, and --dbname has an "
										  "sslmode that lets it travel in the clear"),
						 memory_copy_text("Leave out sslmode, or set it to verify-full."));
	}
	return true;
}

/* ---- times -------------------------------------------------------------------------------- */

static bool
check_shorter(const char *name, int64_t value, const struct config *config, const char *reason,
			  struct fault *fault)
{
	if (value >= config->handler_timeout)
	{
		return fault_set(
			fault, memory_format("%s is not shorter than --handler-timeout: %s", name, reason),
			memory_format("Lower %s or raise --handler-timeout.", name));
	}
	return true;
}

/* ---- seeing ------------------------------------------------------------------------------- */

static bool
check_listen(const struct config *config, struct fault *fault)
{
	struct listen_address address;
	const char *wrong =
		config->listen != NULL ? listen_address_parse(config->listen, &address) : NULL;

	return wrong == NULL ||
		   fault_set(fault, memory_format("--listen \"%s\": %s", config->listen, wrong),
					 memory_copy_text("Write ADDR:PORT, such as 127.0.0.1:9187, or a port alone."));
}

static bool
check_label(const struct config *config, struct fault *fault)
{
	const char *wrong = config->label != NULL ? label_check(config->label) : NULL;

	return wrong == NULL ||
		   fault_set(fault, memory_format("--label \"%s\": %s", config->label, wrong),
					 memory_copy_text("Write attribute:NAME, such as attribute:event_type."));
}

bool
config_check(struct config *config, struct fault *fault)
{
	return check_subscription(config, fault) && check_handler(config, fault) &&
		   settle_source(config, fault) && endpoint_settle(config, fault) &&
		   check_dbname(config, fault) && check_tls(config, fault) && check_listen(config, fault) &&
		   check_label(config, fault) &&
		   check_shorter("--lock-timeout", config->lock_timeout, config,
						 "every long wait for a row would end as a slow handler", fault) &&
		   check_shorter("--batch-time", config->batch_time, config,
						 "batches would grow until they are cancelled", fault);
}
