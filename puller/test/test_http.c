/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http.h"

#define LIMIT_S 10

static int silence_ms; /* the last TCP_USER_TIMEOUT that was set */

int __real_setsockopt(int file, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int file, int level, int name, const void *value, socklen_t size);

int
__wrap_setsockopt(int file, int level, int name, const void *value, socklen_t size)
{
	if (level == IPPROTO_TCP && name == TCP_USER_TIMEOUT)
	{
		memcpy(&silence_ms, value, sizeof(silence_ms));
	}
	return __real_setsockopt(file, level, name, value, size);
}

/* A proxy that makes every connection, and then says nothing more. */
static void
serve(int listener)
{
	static const char made[] = "HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n";
	char bytes[4096];
	int client = accept(listener, NULL, NULL);

	alarm(LIMIT_S);
	if (client < 0 || read(client, bytes, sizeof(bytes)) <= 0 ||
		write(client, made, sizeof(made) - 1) <= 0 || read(client, bytes, sizeof(bytes)) <= 0)
	{
		_exit(1);
	}
	_exit(0);
}

static pid_t
start_proxy(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	char url[64];
	pid_t proxy;

	assert_int_equal(bind(listener, (struct sockaddr *) &address, length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *) &address, &length), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(address.sin_port));
	assert_int_equal(setenv("https_proxy", url, 1), 0);
	assert_int_equal(setenv("no_proxy", "", 1), 0);
	proxy = fork();
	assert_true(proxy >= 0);
	if (proxy == 0)
	{
		serve(listener);
	}
	close(listener);
	return proxy;
}

static void
take(void *context, const struct http_response *response)
{
	struct http_response *taken = context;

	*taken = *response;
	taken->body = NULL;
}

/*
 * A lease begins with the first byte of the answer, and the connection was made long before. One
 * that has gone silent must be found out sooner than TCP does by itself.
 */
static void
connection_that_a_proxy_made(void **state)
{
	pid_t proxy = start_proxy();
	struct http *http = http_new();
	struct http_response response = {.status = -1};
	struct http_spec spec = {.method = "GET",
							 .url = "https://pubsub.test/",
							 .response_limit = 1000,
							 .timeout_ms = LIMIT_S * 1000,
							 .callback = take,
							 .context = &response};
	int status;

	(void) state;
	http_start(http, &spec);
	while (!http_step(http))
	{
		http_wait(http, NULL, 0, 1000);
	}
	assert_int_equal(response.status, 0);
	assert_int_equal(response.first_byte_ms, 0);
	assert_in_range(silence_ms, 1, 30000);
	assert_int_equal(waitpid(proxy, &status, 0), proxy);
	assert_int_equal(status, 0);
	http_free(http);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_that_a_proxy_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
