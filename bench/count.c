/* SPDX-License-Identifier: PostgreSQL */
/*
 * What the puller does with messages, for callgrind to count instructions of:
 *
 *	count decode BYTES    a response to a pull, of messages with a payload of so many bytes
 *	count record BYTES    their array for PostgreSQL
 *	count ack BYTES       their acknowledgement, from the commit to the answer of the service
 *
 * Everything else is done outside of measured().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ack.h"
#include "base64.h"
#include "clock.h"
#include "decode.h"
#include "memory.h"
#include "record.h"

#define MESSAGES 1000
#define LIMIT ((size_t) 1 << 30)
#define LEASE_MS 600000

static struct buffer response;
static struct key_rules rules;
static struct message_list arrived = TAILQ_HEAD_INITIALIZER(arrived);
static struct message *message[MESSAGES];
static struct message_board board;
static struct config config;
static struct auth auth;
static struct pubsub pubsub;
static struct ack ack;
static struct http_spec request;

void measured(void (*work)(void));
void __wrap_http_start(struct http *http, const struct http_spec *spec);

/* The service of a single request; the answer follows when ack_step() is over. */
void
__wrap_http_start(struct http *http, const struct http_spec *spec)
{
	(void) http;
	request = *spec;
}

static void
append(const char *text)
{
	if (!buffer_append(&response, text, strlen(text)))
	{
		abort();
	}
}

/* As the service writes them, with an ack id of its usual length. */
static void
write_response(int bytes)
{
	char *payload = memory_format("{\"account\": 17, \"memo\": \"%0*d\"}", bytes - 28, 0);
	char *data = base64_encode(payload, strlen(payload));


	buffer_init(&response, LIMIT);
	append("{\n  \"receivedMessages\": [");
	for (int i = 0; i < MESSAGES; i++)
	{
		char *text = memory_format(
			"%s\n    {\n      \"ackId\": \"%0176d\",\n      \"message\": {\n"
			"        \"data\": \"%s\",\n        \"attributes\": {\n"
			"          \"idempotency_key\": \"payment-%d\",\n          \"type\": \"payment\"\n"
			"        },\n        \"messageId\": \"%d\",\n"
			"        \"publishTime\": \"2026-01-31T12:00:00.%06dZ\"\n      }\n    }",
			i == 0 ? "" : ",", i, data, i, 1000000 + i, i);

		append(text);
		free(text);
	}
	append("\n  ]\n}\n");
	free(data);
	free(payload);
}

static void
decode(void)
{
	struct decode_error error;
	size_t skipped;
	int count =
		decode_pull_response(response.bytes, response.size, &rules, &arrived, &skipped, &error);

	if (count != MESSAGES || skipped != 0)
	{
		abort();
	}
}

static void
record(void)
{
	struct buffer out;

	buffer_init(&out, LIMIT);
	if (!record_append_array(&out, 16384, message, MESSAGES))
	{
		abort();
	}
	buffer_free(&out);
}

static void
commit_all(void)
{
	message_board_init(&board);
	for (int i = 0; i < MESSAGES; i++)
	{
		message[i]->lease_end = clock_ms() + LEASE_MS;
		message_hold(&board, message[i]);
		message_run(&board, message[i], &board);
		message_set_state(&board, message[i], MESSAGE_COMMITTED);
	}
}

static void
acknowledge(void)
{
	static const struct http_response answer = {.status = 200, .body = "{}", .size = 2};

	for (int i = 0; i < MESSAGES; i++)
	{
		ack_add(&ack, message[i]);
	}
	ack_step(&ack, clock_ms());
	request.callback(request.context, &answer);
	if (board.held != 0)
	{
		abort();
	}
}

/* Not inlined, and nothing at its end that could become a jump: callgrind sees it by its name. */
__attribute__((noinline)) void
measured(void (*work)(void))
{
	static volatile int measurements;

	work();
	measurements++;
}

static void
prepare_service(void)
{
	static char subscription[] = "projects/p/subscriptions/s";
	static char endpoint[] = "http://127.0.0.1:1";

	config = (struct config){.subscription = subscription, .endpoint = endpoint, .emulator = true};
	auth_init(&auth, NULL, &config);
	pubsub_init(&pubsub, NULL, &auth, &config);
	ack_init(&ack, &board, &pubsub);
}

static void
take_messages(void)
{
	struct message *next;
	int count = 0;

	while ((next = TAILQ_FIRST(&arrived)) != NULL)
	{
		TAILQ_REMOVE(&arrived, next, link);
		message[count++] = next;
	}
}

int
main(int argc, char **argv)
{
	const char *what = argc == 3 ? argv[1] : "";
	int bytes = argc == 3 ? atoi(argv[2]) : 0;

	if (bytes < 64 || key_rules_add(&rules, "attribute:idempotency_key") != NULL)
	{
		fprintf(stderr, "usage: count decode|record|ack BYTES\n");
		return 1;
	}
	write_response(bytes);
	if (strcmp(what, "decode") == 0)
	{
		measured(decode);
		return 0;
	}
	decode();
	take_messages();
	if (strcmp(what, "record") == 0)
	{
		measured(record);
		return 0;
	}
	prepare_service();
	commit_all();
	measured(acknowledge);
	return 0;
}
