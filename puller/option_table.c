/* SPDX-License-Identifier: PostgreSQL */
#include "option.h"

#define MEMBER(name) offsetof(struct config, name)
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define KB INT64_C(1024)
#define MB (1024 * KB)

static const char *const log_formats[] = {[LOG_LOGFMT] = "logfmt", [LOG_JSON] = "json", NULL};
static const char *const log_levels[] = {[LOG_DEBUG] = "debug",
										 [LOG_INFO] = "info",
										 [LOG_WARNING] = "warning",
										 [LOG_ERROR] = "error",
										 NULL};

static const char *const db_auths[] = {
	[DB_AUTH_LIBPQ] = "libpq", [DB_AUTH_GCP_IAM] = "gcp-iam", NULL};

/* As help_write() has them. */
static const char *const help_formats[] = {"text", "ini", "man", "bash", "zsh", NULL};

const char *const option_group_title[OPTION_GROUPS] = {
	[OPTION_CONSUMED] = "What is consumed", [OPTION_PUBSUB] = "Pub/Sub",
	[OPTION_DATABASE] = "Database",			[OPTION_BATCHES] = "Batches",
	[OPTION_RUNNING] = "Running",
};

const struct option_row option_table[] = {
	{
		.name = "subscription",
		.kind = OPTION_TEXT,
		.group = OPTION_CONSUMED,
		.metavar = "NAME",
		.sample = "projects/PROJECT/subscriptions/NAME",
		.offset = MEMBER(subscription),
		.help = "The subscription to consume, by its full name "
				"projects/PROJECT/subscriptions/NAME. It must be a pull subscription. Any number "
				"of pullers may share it. Required.",
	},
	{
		.name = "handler",
		.kind = OPTION_TEXT,
		.group = OPTION_CONSUMED,
		.metavar = "FUNCTION",
		.sample = "FUNCTION",
		.offset = MEMBER(handler),
		.help = "The SQL function that applies a message: f, schema.f or, where the name is "
				"overloaded, f(jsonb). It takes the payload, or the key and the payload, or an "
				"inbox_message, and runs in the transaction that records the key. Required.",
	},
	{
		.name = "source",
		.kind = OPTION_TEXT,
		.group = OPTION_CONSUMED,
		.metavar = "NAME",
		.sample = "the full name of the subscription",
		.computed = true,
		.offset = MEMBER(source),
		.help = "The name under which keys are remembered, 1 to 1024 bytes: a key takes effect "
				"once in its source. Give it when a subscription is replaced by another one that "
				"carries the same messages. A new source knows no keys.",
	},
	{
		.name = "key",
		.kind = OPTION_KEYS,
		.group = OPTION_CONSUMED,
		.metavar = "RULE",
		.initial = "attribute:idempotency_key",
		.offset = MEMBER(keys),
		.help = "Where a message has its key: attribute:NAME, json:/POINTER into the payload (RFC "
				"6901), or message-id, which does not recognise an event that was published "
				"twice. May be given 16 times, in the file and the environment separated by "
				"commas or line breaks; the first rule that finds a key wins. A message without "
				"a key becomes a dead letter.",
	},
	{
		.name = "take-over",
		.kind = OPTION_BOOL,
		.group = OPTION_CONSUMED,
		.initial = "off",
		.offset = MEMBER(take_over),
		.help = "Says that the handler or the subscription is meant to differ from the one the "
				"source was last served with. Without it the puller does not start then, since "
				"two handlers on one source take each other's messages. Give it for one start.",
	},
	{
		.name = "shadow",
		.kind = OPTION_BOOL,
		.group = OPTION_CONSUMED,
		.initial = "off",
		.offset = MEMBER(shadow),
		.help = "Runs the handler for every message, rolls it back, acknowledges the message and "
				"reports at the end what would have happened: verdicts, errors by SQLSTATE, times. "
				"Nothing in the database changes, but for sequences. Give it a second "
				"subscription to the topic: what it consumes is lost to others. The source has to "
				"be there; with the keys of another consumer in it, it shows what is a duplicate.",
	},
	{
		.name = "as-dead-letters",
		.kind = OPTION_BOOL,
		.group = OPTION_CONSUMED,
		.initial = "off",
		.offset = MEMBER(as_dead_letters),
		.help = "Consumes the subscription of a native dead-letter topic: runs no handler, and "
				"keeps each message as a dead letter of --source, where it can be retried or "
				"discarded. One whose key was applied after all is a duplicate.",
	},
	{
		.name = "endpoint",
		.kind = OPTION_TEXT,
		.group = OPTION_PUBSUB,
		.metavar = "URL",
		.sample = "https://pubsub.googleapis.com",
		.computed = true,
		.offset = MEMBER(endpoint),
		.help = "Where Pub/Sub's REST interface is. Name a regional one to keep deliveries in "
				"one region, as exactly-once delivery needs outside Google Cloud. Without this "
				"option a set PUBSUB_EMULATOR_HOST is used, and no credentials are sent. A token "
				"is sent over http:// to this machine only.",
	},
	{
		.name = "credentials-file",
		.kind = OPTION_TEXT,
		.group = OPTION_PUBSUB,
		.metavar = "FILE",
		.sample = "FILE",
		.offset = MEMBER(credentials_file),
		.help = "Credentials as Google's tools write them: of a service account, a user, an "
				"impersonated service account or an external account. Without this option they "
				"are searched for as Google's libraries do: GOOGLE_APPLICATION_CREDENTIALS, what "
				"gcloud auth application-default login has left, the metadata server. The file "
				"is read again whenever a token is renewed.",
	},
	{
		.name = "token-file",
		.kind = OPTION_TEXT,
		.group = OPTION_PUBSUB,
		.metavar = "FILE",
		.sample = "FILE",
		.offset = MEMBER(token_file),
		.help = "A file that holds an OAuth 2.0 access token for Pub/Sub and nothing else, in the "
				"place of credentials. It is read again when it changes and when the service "
				"refuses the token; something has to write a new one before the old one ends.",
	},
	{
		.name = "ca-file",
		.kind = OPTION_TEXT,
		.group = OPTION_PUBSUB,
		.metavar = "FILE",
		.sample = "FILE",
		.offset = MEMBER(ca_file),
		.help = "Certificates of the authorities that are trusted, in PEM, for private endpoints "
				"and proxies that look into TLS. The system's own are trusted no more then; add "
				"them to the file where both are needed. The database is not concerned: it has "
				"sslrootcert in --dbname.",
	},
	{
		.name = "pulls",
		.kind = OPTION_INT,
		.group = OPTION_PUBSUB,
		.metavar = "N",
		.initial = "8",
		.offset = MEMBER(pulls),
		.min = 1,
		.max = 64,
		.reloadable = true,
		.help = "The most pull requests in flight, 1 to 64. An idle puller keeps one; more follow "
				"while they come back full. Raise it when Pub/Sub is far away and workers wait "
				"for messages.",
	},
	{
		.name = "max-response",
		.kind = OPTION_BYTES,
		.group = OPTION_PUBSUB,
		.metavar = "BYTES",
		.initial = "64MB",
		.offset = MEMBER(max_response),
		.min = 16 * MB,
		.max = 1024 * MB,
		.limits = "A message of 10 MB, the greatest there is, takes 14 MB in a response.",
		.help = "The largest response of a pull that is read, 16MB to 1GB. A larger one is dropped "
				"and asked for again with half as many messages. Lower it where memory is short.",
	},
	{
		.name = "max-lease",
		.kind = OPTION_DURATION,
		.group = OPTION_PUBSUB,
		.metavar = "TIME",
		.initial = "60min",
		.offset = MEMBER(max_lease),
		.min = MINUTE,
		.max = 24 * HOUR,
		.limits = "A lease is extended by 60 s at a time.",
		.reloadable = true,
		.help = "How long after its delivery a message may be held, 1min to 24h. Then it is given "
				"back and delivered again, which is safe. Raise it if messages wait longer than "
				"this for their turn.",
	},
	{
		.name = "dbname",
		.kind = OPTION_TEXT,
		.group = OPTION_DATABASE,
		.metavar = "CONNINFO",
		.sample = "CONNINFO",
		.offset = MEMBER(dbname),
		.secret = true,
		.help = "The database: a name, a connection string or a postgresql:// URI. What it leaves "
				"out comes from libpq's own places, such as PGHOST, PGSERVICE and the password "
				"file. Keep a password out of the command line, which other users can read.",
	},
	{
		.name = "db-auth",
		.kind = OPTION_ENUM,
		.group = OPTION_DATABASE,
		.metavar = "METHOD",
		.initial = "libpq",
		.offset = MEMBER(db_auth),
		.choices = db_auths,
		.help = "Where the password of a connection comes from: libpq's own places, or gcp-iam, "
				"which takes a fresh access token for the same credentials as Pub/Sub's for each "
				"connection, as IAM database authentication of Cloud SQL and AlloyDB wants it. A "
				"token is sent over TLS only: sslmode is require unless --dbname or PGSSLMODE asks "
				"for more.",
	},
	{
		.name = "workers",
		.kind = OPTION_INT,
		.group = OPTION_DATABASE,
		.metavar = "N",
		.initial = "1",
		.offset = MEMBER(workers),
		.min = 1,
		.max = 64,
		.help = "Connections that run handlers, 1 to 64. Raise it when handlers wait for something "
				"else than the processor and seldom touch the same rows.",
	},
	{
		.name = "handler-timeout",
		.kind = OPTION_DURATION,
		.group = OPTION_DATABASE,
		.metavar = "TIME",
		.initial = "30s",
		.offset = MEMBER(handler_timeout),
		.min = SECOND / 10,
		.max = 50 * SECOND,
		.limits = "A statement must end before the lease of its messages does, which is extended "
				  "by 60 s at a time.",
		.reloadable = true,
		.help = "The longest a statement may run, 100ms to 50s, before it is cancelled and its "
				"messages are tried again later. Raise it for handlers that are slow by nature.",
	},
	{
		.name = "lock-timeout",
		.kind = OPTION_DURATION,
		.group = OPTION_DATABASE,
		.metavar = "TIME",
		.initial = "5s",
		.offset = MEMBER(lock_timeout),
		.min = SECOND / 100,
		.max = 49 * SECOND,
		.limits = "It must be shorter than --handler-timeout.",
		.reloadable = true,
		.help = "The longest wait for a row or a key that another transaction holds, 10ms to 49s; "
				"then the messages are tried again later. It must be shorter than "
				"--handler-timeout.",
	},
	{
		.name = "db-grace",
		.kind = OPTION_DURATION,
		.group = OPTION_DATABASE,
		.metavar = "TIME",
		.initial = "120s",
		.offset = MEMBER(db_grace),
		.min = 0,
		.max = HOUR,
		.reloadable = true,
		.help = "How long messages are held while the database is away, 0 to 1h, before they are "
				"given back. Make it longer than a failover takes.",
	},
	{
		.name = "batch-size",
		.kind = OPTION_INT,
		.group = OPTION_BATCHES,
		.metavar = "N",
		.initial = "200",
		.offset = MEMBER(batch_size),
		.min = 1,
		.max = 10000,
		.reloadable = true,
		.help = "The most messages in a transaction, 1 to 10000. A batch takes what is ready and "
				"waits for no more, so a quiet subscription keeps its latency. 1 gives every "
				"message a transaction of its own.",
	},
	{
		.name = "batch-bytes",
		.kind = OPTION_BYTES,
		.group = OPTION_BATCHES,
		.metavar = "BYTES",
		.initial = "16MB",
		.offset = MEMBER(batch_bytes),
		.min = 64 * KB,
		.max = 256 * MB,
		.reloadable = true,
		.help = "The most bytes of messages in a transaction, 64kB to 256MB. A message larger than "
				"this has a transaction of its own. Lower it where memory is short.",
	},
	{
		.name = "lock-group",
		.kind = OPTION_TEXT,
		.group = OPTION_BATCHES,
		.metavar = "NAME",
		.sample = "the source",
		.computed = true,
		.offset = MEMBER(lock_group),
		.help = "Sources whose handlers touch the same rows deadlock with each other. Give them "
				"one name here, and after a deadlock their batches run one at a time, across all "
				"pullers. It is remembered with the source.",
	},
	{
		.name = "batch-time",
		.kind = OPTION_DURATION,
		.group = OPTION_BATCHES,
		.metavar = "TIME",
		.initial = "500ms",
		.offset = MEMBER(batch_time),
		.min = 1,
		.max = 49 * SECOND,
		.limits = "It must be shorter than --handler-timeout.",
		.reloadable = true,
		.help = "How long a transaction should take, 1ms to 49s: batches grow and shrink with the "
				"speed of the handler to come near it. Shorter means less latency and shorter row "
				"locks, longer means fewer commits. It must be shorter than --handler-timeout.",
	},
	{
		.name = "grace",
		.kind = OPTION_DURATION,
		.group = OPTION_RUNNING,
		.metavar = "TIME",
		.initial = "25s",
		.offset = MEMBER(grace),
		.min = 0,
		.max = HOUR,
		.reloadable = true,
		.help = "How long SIGTERM lets open transactions and acknowledgements finish, 0 to 1h. The "
				"rest is given back at once. Keep it below what the supervisor allows; Kubernetes "
				"kills after 30 s.",
	},
	{
		.name = "halt-after",
		.kind = OPTION_INT,
		.group = OPTION_RUNNING,
		.metavar = "N",
		.initial = "20",
		.offset = MEMBER(halt_after),
		.min = 2,
		.max = 100000,
		.reloadable = true,
		.help =
			"When this many different messages failed one after another and none was applied "
			"between, 2 to 100000, it is not the messages: the source is halted for all "
			"pullers, nothing more is counted or becomes a dead letter, one message is tried "
			"after 1 s, then after pauses of up to 30 s, and the first that is applied ends it.",
	},
	{
		.name = "purge-every",
		.kind = OPTION_DURATION,
		.group = OPTION_RUNNING,
		.metavar = "TIME",
		.initial = "0s",
		.offset = MEMBER(purge_every),
		.min = 0,
		.max = 168 * HOUR,
		.reloadable = true,
		.help = "How often keys are forgotten that are older than the dedup_window of their source "
				"(see inbox_configure), 0 to 168h: first at the start, a little at a time, on a "
				"connection of its own. 0 leaves that to others. Of several pullers one does it.",
	},
	{
		.name = "exit-on-permanent",
		.kind = OPTION_BOOL,
		.group = OPTION_RUNNING,
		.initial = "off",
		.offset = MEMBER(exit_on_permanent),
		.help =
			"Ends with status 2 when the subscription, the handler or a permission is missing, or "
			"the credentials give no token and will not by themselves. Otherwise the puller says "
			"so, waits for it and looks again every 30 s.",
	},
	{
		.name = "listen",
		.kind = OPTION_TEXT,
		.group = OPTION_RUNNING,
		.metavar = "ADDR:PORT",
		.sample = "127.0.0.1:9187",
		.offset = MEMBER(listen),
		.help = "Serves a status page at /, metrics for Prometheus at /metrics, and /livez, "
				"/readyz and /healthz, over HTTP. A port alone listens on 127.0.0.1; 0.0.0.0 or "
				"[::] on every address. It can only be read, but shows keys and error texts to "
				"whoever can reach it. Off unless given.",
	},
	{
		.name = "label",
		.kind = OPTION_TEXT,
		.group = OPTION_RUNNING,
		.metavar = "attribute:NAME",
		.sample = "attribute:event_type",
		.offset = MEMBER(label),
		.help = "Counts messages in /metrics by the value of this attribute too. The first 50 "
				"values are told apart, all others are \"other\".",
	},
	{
		.name = "log-payloads",
		.kind = OPTION_BOOL,
		.group = OPTION_RUNNING,
		.initial = "off",
		.offset = MEMBER(log_payloads),
		.reloadable = true,
		.help = "Writes the first bytes of a message's payload into the lines of its failures. "
				"Payloads are never logged otherwise.",
	},
	{
		.name = "log-format",
		.kind = OPTION_ENUM,
		.group = OPTION_RUNNING,
		.metavar = "FORMAT",
		.initial = "logfmt",
		.offset = MEMBER(log_format),
		.choices = log_formats,
		.reloadable = true,
		.help = "How events are written to stderr, one a line: logfmt for people, json for "
				"machines.",
	},
	{
		.name = "log-level",
		.kind = OPTION_ENUM,
		.group = OPTION_RUNNING,
		.metavar = "LEVEL",
		.initial = "info",
		.offset = MEMBER(log_level),
		.choices = log_levels,
		.reloadable = true,
		.help = "The least important events that are written: debug, info, warning or error.",
	},
	{
		.name = "config",
		.kind = OPTION_CONFIG,
		.group = OPTION_RUNNING,
		.metavar = "FILE",
		.help = "An ini file with any of the options above; flags and the environment come before "
				"it. SIGHUP reads it again.",
	},
	{
		.name = "check",
		.kind = OPTION_CHECK,
		.group = OPTION_RUNNING,
		.help = "Looks at everything that the other options name, and ends: database, extension, "
				"rights, handler, source, credentials, subscription. Pulls nothing and changes "
				"nothing. A line for each fact: \u2713, or \u2717 with the remedy, or \u00b7 "
				"where there is no verdict. What is not given is not looked at.",
	},
	{
		.name = "json",
		.kind = OPTION_JSON,
		.group = OPTION_RUNNING,
		.help = "With --check and --seek: one JSON document instead of the lines.",
	},
	{
		.name = "seek",
		.kind = OPTION_SEEK,
		.group = OPTION_RUNNING,
		.metavar = "TIME|restore-point",
		.help = "After a restore or a failover that lost commits: works out the time to seek the "
				"subscription back to, or takes it as 2026-01-31T12:00:00Z, shows it and ends. "
				"What was published since then is delivered again, and what the database has "
				"already is a duplicate. Exit status 0: done; 3: it would be done, see --yes; 2: "
				"it is refused, with the reason and the remedy.",
	},
	{
		.name = "yes",
		.kind = OPTION_YES,
		.group = OPTION_RUNNING,
		.help = "With --seek: seeks. Without it the time is only shown.",
	},
	{
		.name = "help",
		.kind = OPTION_HELP,
		.group = OPTION_RUNNING,
		.metavar = "FORMAT",
		.choices = help_formats,
		.help = "Shows this text; --help=ini writes a sample file with every option, --help=man a "
				"manual page, --help=bash and --help=zsh a completion for these shells.",
	},
	{
		.name = "version",
		.kind = OPTION_VERSION,
		.group = OPTION_RUNNING,
		.help = "Shows the version.",
	},
};

const size_t option_count = sizeof(option_table) / sizeof(option_table[0]);

_Static_assert(sizeof(option_table) / sizeof(option_table[0]) <= OPTION_MAX, "OPTION_MAX");
