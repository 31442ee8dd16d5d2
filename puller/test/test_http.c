/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http.h"
#include "key_pair.h"
#include "memory.h"

#define LIMIT_S 10

/* The last socket that was given a TCP_USER_TIMEOUT, kept beyond its connection. */
static int watched = -1;

int __real_setsockopt(int file, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int file, int level, int name, const void *value, socklen_t size);

int
__wrap_setsockopt(int file, int level, int name, const void *value, socklen_t size)
{
	if (level == IPPROTO_TCP && name == TCP_USER_TIMEOUT)
	{
		if (watched >= 0)
		{
			close(watched);
		}
		watched = dup(file);
	}
	return __real_setsockopt(file, level, name, value, size);
}

static int
option_of_watched(int level, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	assert_int_equal(getsockopt(watched, level, name, &value, &size), 0);
	return value;
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

static int
listen_somewhere(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(listener, (struct sockaddr *) &address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	return listener;
}

static char *
url_of(int listener, const char *scheme)
{
	struct sockaddr_in address;
	socklen_t length = sizeof(address);

	assert_int_equal(getsockname(listener, (struct sockaddr *) &address, &length), 0);
	return memory_format("%s://127.0.0.1:%d", scheme, ntohs(address.sin_port));
}

static pid_t
start_proxy(void)
{
	int listener = listen_somewhere();
	char *url = url_of(listener, "http");
	pid_t proxy;

	assert_int_equal(setenv("https_proxy", url, 1), 0);
	assert_int_equal(setenv("no_proxy", "", 1), 0);
	proxy = fork();
	assert_true(proxy >= 0);
	if (proxy == 0)
	{
		serve(listener);
	}
	close(listener);
	free(url);
	return proxy;
}

static void
take(void *context, const struct http_response *response)
{
	struct http_response *taken = context;

	*taken = *response;
	taken->body = NULL;
}

static struct http_response
ask(struct http *http, const char *url, bool direct)
{
	struct http_response response = {.status = -1};
	struct http_spec spec = {.method = "GET",
							 .url = url,
							 .direct = direct,
							 .response_limit = 1000,
							 .timeout_ms = LIMIT_S * 1000,
							 .callback = take,
							 .context = &response};

	http_start(http, &spec);
	while (!http_step(http))
	{
		http_wait(http, NULL, 0, 1000);
	}
	return response;
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
	struct http_response response = ask(http, "https://pubsub.test/", false);
	int status;

	(void) state;
	assert_int_equal(response.status, 0);
	assert_int_equal(response.first_byte_ms, 0);
	assert_in_range(option_of_watched(IPPROTO_TCP, TCP_USER_TIMEOUT), 1, 30000);
	assert_int_equal(waitpid(proxy, &status, 0), proxy);
	assert_int_equal(status, 0);
	http_free(http);
}

/* Answers one request, and ends with status 0 when it is one that every server understands. */
static void
serve_plain(int listener)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	char bytes[4096];
	int client = accept(listener, NULL, NULL);
	ssize_t size;

	alarm(LIMIT_S);
	size = client >= 0 ? read(client, bytes, sizeof(bytes) - 1) : -1;
	bytes[size > 0 ? size : 0] = '\0';
	_exit(strncmp(bytes, "GET / HTTP/1.1\r\n", 16) == 0 && strcasestr(bytes, "upgrade") == NULL &&
				  write(client, answer, sizeof(answer) - 1) > 0
			  ? 0
			  : 1);
}

/* Behind a NAT or a firewall an idle connection is forgotten, and nobody is told. */
static void
plain_text_is_http_1_and_is_kept_alive(void **state)
{
	int listener = listen_somewhere();
	char *url = url_of(listener, "http");
	struct http *http = http_new();
	pid_t server = fork();
	int status;

	(void) state;
	assert_true(server >= 0);
	if (server == 0)
	{
		serve_plain(listener);
	}
	assert_int_equal(ask(http, url, true).status, 200);
	assert_int_equal(waitpid(server, &status, 0), server);
	assert_int_equal(status, 0);
	assert_int_equal(option_of_watched(SOL_SOCKET, SO_KEEPALIVE), 1);
	assert_in_range(option_of_watched(IPPROTO_TCP, TCP_KEEPIDLE), 1, 60);
	assert_in_range(option_of_watched(IPPROTO_TCP, TCP_KEEPINTVL), 1, 30);
	http_free(http);
	close(listener);
	free(url);
}

/* ---- TLS ------------------------------------------------------------------------------------ */

/* A certificate for 127.0.0.1, signed by its own key. */
static X509 *
make_certificate(void)
{
	X509 *certificate = X509_new();
	X509_NAME *name = X509_get_subject_name(certificate);
	X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");

	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *) "test", -1, -1, 0);
	X509_set_issuer_name(certificate, name);
	X509_set_pubkey(certificate, key_pair());
	X509_add_ext(certificate, names, -1);
	assert_true(X509_sign(certificate, key_pair(), EVP_sha256()) > 0);
	X509_EXTENSION_free(names);
	return certificate;
}

/* The process ends with what was offered: 1 for HTTP/1.1, 2 for HTTP/2, 3 for both. */
static int
see_protocols(SSL *ssl, const unsigned char **out, unsigned char *out_size, const unsigned char *in,
			  unsigned in_size, void *context)
{
	int seen = 0;

	(void) ssl;
	(void) out;
	(void) out_size;
	(void) context;
	for (unsigned i = 0; i < in_size; i += in[i] + 1u)
	{
		seen |= in[i] == 8 && memcmp(in + i + 1, "http/1.1", 8) == 0 ? 1 : 0;
		seen |= in[i] == 2 && memcmp(in + i + 1, "h2", 2) == 0 ? 2 : 0;
	}
	_exit(seen);
}

static int
ignore_protocols(SSL *ssl, const unsigned char **out, unsigned char *out_size,
				 const unsigned char *in, unsigned in_size, void *context)
{
	(void) ssl;
	(void) out;
	(void) out_size;
	(void) in;
	(void) in_size;
	(void) context;
	return SSL_TLSEXT_ERR_NOACK;
}

/* Answers one request, and ends with status 0. */
static void
serve_tls(int listener, X509 *certificate, SSL_CTX_alpn_select_cb_func protocols)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	SSL *ssl;
	char bytes[4096];

	alarm(LIMIT_S);
	SSL_CTX_use_certificate(context, certificate);
	SSL_CTX_use_PrivateKey(context, key_pair());
	SSL_CTX_set_alpn_select_cb(context, protocols, NULL);
	ssl = SSL_new(context);
	SSL_set_fd(ssl, accept(listener, NULL, NULL));
	if (SSL_accept(ssl) != 1 || SSL_read(ssl, bytes, sizeof(bytes)) <= 0 ||
		SSL_write(ssl, answer, sizeof(answer) - 1) <= 0)
	{
		_exit(9);
	}
	_exit(0);
}

/* A client that trusts nobody may not even connect, for which the server would wait. */
static void
wake(int listener)
{
	struct sockaddr_in address;
	socklen_t length = sizeof(address);
	int client = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(getsockname(listener, (struct sockaddr *) &address, &length), 0);
	assert_int_equal(connect(client, (struct sockaddr *) &address, length), 0);
	close(client);
}

/* The status of the answer and of the server. */
static void
ask_tls(SSL_CTX_alpn_select_cb_func protocols, bool trusted, long *answered, int *server_status)
{
	X509 *certificate = make_certificate();
	struct http *http = http_new();
	int listener = listen_somewhere();
	char *url = url_of(listener, "https");
	char ca_file[] = "/tmp/inbox-ca-XXXXXX";
	FILE *file = fdopen(mkstemp(ca_file), "w");
	pid_t server;
	int status;

	assert_non_null(file);
	assert_int_equal(PEM_write_X509(file, certificate), 1);
	fclose(file);
	server = fork();
	assert_true(server >= 0);
	if (server == 0)
	{
		serve_tls(listener, certificate, protocols);
	}
	if (trusted)
	{
		http_trust(http, ca_file);
	}
	*answered = ask(http, url, true).status;
	wake(listener);
	assert_int_equal(waitpid(server, &status, 0), server);
	*server_status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	http_free(http);
	unlink(ca_file);
	close(listener);
	free(url);
	X509_free(certificate);
}

static void
trusts_who_is_named_only(void **state)
{
	long answered;
	int server;

	(void) state;
	ask_tls(ignore_protocols, true, &answered, &server);
	assert_int_equal(answered, 200);
	assert_int_equal(server, 0);
	ask_tls(ignore_protocols, false, &answered, &server);
	assert_int_equal(answered, 0);
	assert_int_equal(server, 9);
}

static void
offers_http_2_over_tls(void **state)
{
	long answered;
	int server;

	(void) state;
	ask_tls(see_protocols, true, &answered, &server);
	assert_int_equal(server, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_that_a_proxy_made),
		cmocka_unit_test(plain_text_is_http_1_and_is_kept_alive),
		cmocka_unit_test(trusts_who_is_named_only),
		cmocka_unit_test(offers_http_2_over_tls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
