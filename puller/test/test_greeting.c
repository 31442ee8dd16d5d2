/* SPDX-License-Identifier: PostgreSQL */
/* A greeting with a server that sends its answers in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db.h"
#include "log.h"

/* Far longer than anything takes: who waits for the rest of an answer waits so long. */
#define LIMIT_S 10

static int pieces[2]; /* a byte through this pipe lets the server send the next piece */

/* ---- the server ---------------------------------------------------------------------------- */

static void
send_bytes(int client, const void *bytes, size_t size)
{
	if (write(client, bytes, size) != (ssize_t) size)
	{
		_exit(1);
	}
}

/* A message of the protocol, its body filled up with zeros. */
static void
send_message(int client, char type, uint32_t size, const char *body)
{
	char message[64] = {type};
	uint32_t wire = htonl(size + 4);

	memcpy(message + 1, &wire, sizeof(wire));
	snprintf(message + 5, sizeof(message) - 5, "%s", body);
	send_bytes(client, message, size + 5);
}

static void
await(int file)
{
	char byte;

	if (read(file, &byte, 1) != 1)
	{
		_exit(1);
	}
}

/* Everything but the ReadyForQuery, and that when it is asked for. */
static void
serve(int listener)
{
	char bytes[4096];
	int client = accept(listener, NULL, NULL);

	alarm(LIMIT_S);
	if (client < 0 || read(client, bytes, sizeof(bytes)) <= 0)
	{
		_exit(1);
	}
	send_message(client, 'R', 4, "");
	send_message(client, 'Z', 1, "I");
	if (read(client, bytes, sizeof(bytes)) <= 0)
	{
		_exit(1);
	}
	send_message(client, '1', 0, "");
	send_message(client, '2', 0, "");
	send_message(client, 'n', 0, "");
	send_message(client, 'C', 9, "SELECT 0");
	await(pieces[0]);
	send_message(client, 'Z', 1, "I");
	await(pieces[0]);
	_exit(0);
}

static pid_t
start_server(char *conninfo, size_t size)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	pid_t server;

	assert_int_equal(bind(listener, (struct sockaddr *) &address, length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *) &address, &length), 0);
	snprintf(conninfo, size, "hostaddr=127.0.0.1 port=%d user=u sslmode=disable gssencmode=disable",
			 ntohs(address.sin_port));
	assert_int_equal(pipe(pieces), 0);
	server = fork();
	assert_true(server >= 0);
	if (server == 0)
	{
		serve(listener);
	}
	close(listener);
	return server;
}

/* ---- the client ---------------------------------------------------------------------------- */

static int downs;

static void
note_down(void *context, struct db *db, enum db_refusal refusal)
{
	(void) context;
	(void) db;
	assert_int_equal(refusal, DB_REFUSED_FOR_NOW);
	downs++;
}

/* Until nothing comes any more for a while. */
static void
step_while_readable(struct db *db)
{
	short events;
	struct pollfd file = {.fd = db_socket(db, &events), .events = POLLIN};

	while (file.fd >= 0 && poll(&file, 1, 300) > 0)
	{
		db_step(db);
		file.fd = db_socket(db, &events);
	}
}

static void
rest_of_an_answer_is_not_waited_for(void **state)
{
	static const struct db_events events = {.down = note_down};
	struct config config = {0};
	struct db db;
	char conninfo[128];
	pid_t server = start_server(conninfo, sizeof(conninfo));
	int status;

	(void) state;
	log_configure(LOG_JSON, LOG_ERROR);
	db_init(&db, 1, &config, NULL, &events, NULL);
	alarm(LIMIT_S);
	db_connected(&db, PQconnectdb(conninfo));
	assert_int_equal(db.state, DB_GREETING);
	db_step(&db);
	step_while_readable(&db);
	assert_int_equal(db.state, DB_GREETING);
	assert_int_equal(write(pieces[1], "x", 1), 1);
	/* No row came, so in the end it is no greeting. */
	step_while_readable(&db);
	assert_int_equal(db.state, DB_DOWN);
	assert_int_equal(downs, 1);
	assert_int_equal(write(pieces[1], "x", 1), 1);
	assert_int_equal(waitpid(server, &status, 0), server);
	assert_int_equal(status, 0);
	alarm(0);
	db_free(&db);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rest_of_an_answer_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
