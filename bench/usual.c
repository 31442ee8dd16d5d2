/* SPDX-License-Identifier: PostgreSQL */
/*
 * What a consumer usually looks like, to compare with: each connection pulls for itself, runs
 * BEGIN, INSERT, handler, COMMIT for one message after the other, prepared, and acknowledges what
 * a pull brought, up to 100 messages, by one request on a connection that is kept:
 *
 *	usual --dbname CONNINFO --subscription URL --connections N --seconds S
 *
 * Prints how many messages were acknowledged, and in how many seconds. Ends when nothing is left.
 */
#include <curl/curl.h>
#include <getopt.h>
#include <json-c/json.h>
#include <libpq-fe.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buffer.h"
#include "memory.h"

#define CONNECTIONS_MAX 64
#define RESPONSE_LIMIT ((size_t) 16 << 20)
#define PULL "{\"maxMessages\":100,\"returnImmediately\":true}"

struct task
{
	const char *dbname;
	const char *subscription;
	int connections;
	double seconds;
};

struct consumer
{
	const struct task *task;
	PGconn *database;
	CURL *curl;
	struct curl_slist *headers;
	struct buffer response;
	size_t acked;
	double end; /* of the last acknowledgement */
};

static const char *const statements[][2] = {
	{"begin", "BEGIN"},
	{"claim", "INSERT INTO usual_claim (key) VALUES ($1) ON CONFLICT DO NOTHING"},
	{"handle", "SELECT apply_payment($1, $2)"},
	{"commit", "COMMIT"},
};

static double start;

static _Noreturn void
fail(const char *what, const char *why)
{
	fprintf(stderr, "usual: %s: %s\n", what, why);
	exit(1);
}

static double
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

/* ---- Pub/Sub ---------------------------------------------------------------------------- */

static size_t
take(char *bytes, size_t size, size_t count, void *context)
{
	return buffer_append(context, bytes, size * count) ? size * count : 0;
}

static void
post(struct consumer *consumer, const char *verb, const char *body)
{
	char *url = memory_format("%s:%s", consumer->task->subscription, verb);
	long status = 0;
	CURLcode code;

	consumer->response.size = 0;
	curl_easy_setopt(consumer->curl, CURLOPT_URL, url);
	curl_easy_setopt(consumer->curl, CURLOPT_POSTFIELDS, body);
	code = curl_easy_perform(consumer->curl);
	curl_easy_getinfo(consumer->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK || status != 200)
	{
		fail(url, code != CURLE_OK ? curl_easy_strerror(code) : "refused");
	}
	free(url);
}

static struct json_object *
pull(struct consumer *consumer)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *answer;

	post(consumer, "pull", PULL);
	answer =
		json_tokener_parse_ex(tokener, consumer->response.bytes, (int) consumer->response.size);
	json_tokener_free(tokener);
	if (answer == NULL)
	{
		fail("pull", "the answer is no JSON");
	}
	return answer;
}

static void
acknowledge(struct consumer *consumer, struct json_object *messages)
{
	struct json_object *body = json_object_new_object();
	struct json_object *ids = json_object_new_array();
	size_t count = json_object_array_length(messages);

	for (size_t i = 0; i < count; i++)
	{
		struct json_object *message = json_object_array_get_idx(messages, i);

		json_object_array_add(ids, json_object_get(json_object_object_get(message, "ackId")));
	}
	json_object_object_add(body, "ackIds", ids);
	post(consumer, "acknowledge", json_object_to_json_string(body));
	json_object_put(body);
	consumer->acked += count;
	consumer->end = seconds_now();
}

/* ---- the database ----------------------------------------------------------------------- */

static void
open_database(struct consumer *consumer)
{
	consumer->database = PQconnectdb(consumer->task->dbname);
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
	{
		PGresult *result =
			PQprepare(consumer->database, statements[i][0], statements[i][1], 0, NULL);

		if (PQresultStatus(result) != PGRES_COMMAND_OK)
		{
			fail(statements[i][1], PQerrorMessage(consumer->database));
		}
		PQclear(result);
	}
}

/* Whether it wrote one row. */
static bool
execute(struct consumer *consumer, const char *name, int count, const char *const *values)
{
	PGresult *result = PQexecPrepared(consumer->database, name, count, values, NULL, NULL, 0);
	bool wrote;

	if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		fail(name, PQerrorMessage(consumer->database));
	}
	wrote = strcmp(PQcmdTuples(result), "1") == 0;
	PQclear(result);
	return wrote;
}

static void
apply(struct consumer *consumer, const char *key, const char *payload)
{
	const char *values[] = {key, payload};

	(void) execute(consumer, "begin", 0, NULL);
	if (execute(consumer, "claim", 1, values))
	{
		(void) execute(consumer, "handle", 2, values);
	}
	(void) execute(consumer, "commit", 0, NULL);
}

static void
apply_message(struct consumer *consumer, struct json_object *received)
{
	struct json_object *message = json_object_object_get(received, "message");
	struct json_object *attributes = json_object_object_get(message, "attributes");
	struct json_object *data = json_object_object_get(message, "data");
	const char *encoded = json_object_get_string(data);
	unsigned char *payload = memory_new(strlen(encoded) + 1);

	/* A NUL behind it, and one for each byte of padding. */
	EVP_DecodeBlock(payload, (const unsigned char *) encoded, (int) strlen(encoded));
	apply(consumer, json_object_get_string(json_object_object_get(attributes, "idempotency_key")),
		  (const char *) payload);
	free(payload);
}

/* ---- consumers -------------------------------------------------------------------------- */

static void
open_service(struct consumer *consumer)
{
	consumer->headers = curl_slist_append(NULL, "Content-Type: application/json");
	consumer->curl = curl_easy_init();
	curl_easy_setopt(consumer->curl, CURLOPT_HTTPHEADER, consumer->headers);
	curl_easy_setopt(consumer->curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(consumer->curl, CURLOPT_WRITEDATA, &consumer->response);
	curl_easy_setopt(consumer->curl, CURLOPT_NOSIGNAL, 1L);
}

static void *
consume(void *context)
{
	struct consumer *consumer = context;
	bool more = true;

	while (more && seconds_now() < start + consumer->task->seconds)
	{
		struct json_object *answer = pull(consumer);
		struct json_object *messages = json_object_object_get(answer, "receivedMessages");
		size_t count = messages != NULL ? json_object_array_length(messages) : 0;

		for (size_t i = 0; i < count; i++)
		{
			apply_message(consumer, json_object_array_get_idx(messages, i));
		}
		more = count > 0;
		if (more)
		{
			acknowledge(consumer, messages);
		}
		json_object_put(answer);
	}
	return NULL;
}

static void
close_consumer(struct consumer *consumer)
{
	PQfinish(consumer->database);
	curl_easy_cleanup(consumer->curl);
	curl_slist_free_all(consumer->headers);
	buffer_free(&consumer->response);
}

static void
run(const struct task *task)
{
	struct consumer consumer[CONNECTIONS_MAX] = {0};
	pthread_t thread[CONNECTIONS_MAX];
	size_t acked = 0;
	double end = 0;

	for (int i = 0; i < task->connections; i++)
	{
		consumer[i].task = task;
		buffer_init(&consumer[i].response, RESPONSE_LIMIT);
		open_database(&consumer[i]);
		open_service(&consumer[i]);
	}
	start = seconds_now();
	for (int i = 0; i < task->connections; i++)
	{
		if (pthread_create(&thread[i], NULL, consume, &consumer[i]) != 0)
		{
			fail("pthread_create", "no thread");
		}
	}
	for (int i = 0; i < task->connections; i++)
	{
		pthread_join(thread[i], NULL);
		acked += consumer[i].acked;
		end = consumer[i].end > end ? consumer[i].end : end;
		close_consumer(&consumer[i]);
	}
	printf("%zu %.3f\n", acked, end - start);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"dbname", required_argument, NULL, 'd'},
											{"subscription", required_argument, NULL, 's'},
											{"connections", required_argument, NULL, 'c'},
											{"seconds", required_argument, NULL, 't'},
											{NULL, 0, NULL, 0}};
	struct task task = {.connections = 1, .seconds = 5};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
	{
		task.dbname = option == 'd' ? optarg : task.dbname;
		task.subscription = option == 's' ? optarg : task.subscription;
		task.connections = option == 'c' ? atoi(optarg) : task.connections;
		task.seconds = option == 't' ? atof(optarg) : task.seconds;
	}
	if (task.dbname == NULL || task.subscription == NULL || task.connections < 1 ||
		task.connections > CONNECTIONS_MAX)
	{
		fail("usage", "--dbname CONNINFO --subscription URL --connections N --seconds S");
	}
	curl_global_init(CURL_GLOBAL_DEFAULT);
	run(&task);
	return 0;
}
