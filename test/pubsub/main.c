/* SPDX-License-Identifier: PostgreSQL */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "body.h"
#include "buf.h"
#include "fault.h"
#include "history.h"
#include "lookup.h"
#include "memory.h"
#include "options.h"
#include "problem.h"
#include "server.h"
#include "service.h"
#include "token.h"

/* The exit codes besides 0: a wrong usage or configuration. */
#define EXIT_USAGE 1

static bool
read_file(const char *path, struct buf *out)
{
	FILE *file = fopen(path, "re");
	char block[4096];
	size_t len;

	if (file == NULL)
	{
		fprintf(stderr, "cannot read %s: %s\n", path, strerror(errno));
		return false;
	}
	while ((len = fread(block, 1, sizeof(block), file)) > 0)
		buf_add(out, block, len);
	fclose(file);
	buf_text(out, "");
	return true;
}

/* Written under another name first: who sees the file finds the number in it. */
static bool
write_number(const char *path, long number)
{
	struct buf other = {0};
	FILE *file;
	bool good;

	if (path == NULL)
		return true;
	buf_printf(&other, "%s.new", path);
	file = fopen(other.data, "we");
	good = file != NULL && fprintf(file, "%ld\n", number) > 0;
	if (file != NULL)
		good = fclose(file) == 0 && good;
	good = good && rename(other.data, path) == 0;
	if (!good)
		fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
	buf_free(&other);
	return good;
}

static bool
load_faults(struct faults *faults, const struct options *options)
{
	struct problem problem = {0};
	struct buf text = {0};
	struct json_object *array;
	bool good = false;

	if (options->seed != NULL)
		faults_seed(faults, strtoull(options->seed, NULL, 10));
	if (options->seed != NULL || options->fault_rate != NULL)
		fprintf(stderr, "faults are drawn from seed %s\n", options->seed ? options->seed : "0");
	if (options->fault_rate != NULL)
		faults_add_all_kinds(faults, strtod(options->fault_rate, NULL));
	if (options->faults == NULL)
		return true;
	if (!read_file(options->faults, &text))
		return false;
	array = json_tokener_parse(text.data);
	if (!json_object_is_type(array, json_type_array))
		fprintf(stderr, "%s: it has to hold a JSON array of fault rules\n", options->faults);
	else if (!faults_add(faults, array, &problem))
		fprintf(stderr, "%s: %s\n", options->faults, problem.text);
	else
		good = true;
	json_object_put(array);
	buf_free(&text);
	return good;
}

static bool
set_up(struct service *service, const struct options *options)
{
	struct lookup_options lookup = {
		options->lookup,
		options->lookup_standby,
		options->lookup_sql,
		options->lookup_key,
	};

	service_init(service);
	service->faults = faults_new(service);
	if (options->long_poll != NULL)
		service->long_poll = (int64_t) (strtod(options->long_poll, NULL) * SECOND);
	if (options->token_file != NULL)
		service->tokens = tokens_new(options->token_file);
	if (options->history != NULL && (service->history = history_open(options->history)) == NULL)
		return false;
	if (options->lookup != NULL && (service->lookup = lookup_new(service, &lookup)) == NULL)
		return false;
	return load_faults(service->faults, options);
}

/* "HOST:PORT"; brackets around an IPv6 address. */
static bool
parse_listen(const char *text, struct server_options *server)
{
	const char *colon = strrchr(text, ':');
	char *end;
	long port = colon == NULL ? -1 : strtol(colon + 1, &end, 10);
	bool brackets = *text == '[' && colon > text && colon[-1] == ']';

	if (port < 0 || port > 65535 || end == colon + 1 || *end != '\0')
	{
		fprintf(stderr, "--listen %s: it has to be ADDRESS:PORT, such as 127.0.0.1:0\n", text);
		return false;
	}
	server->port = (int) port;
	server->host =
		memory_copy_bytes(text + brackets, (size_t) (colon - text) - 2 * (size_t) brackets);
	return true;
}

static struct server *
open_server(struct service *service, const struct options *options)
{
	const char *listen = options->listen ? options->listen : "127.0.0.1:8085";
	struct server_options settings = {0};
	struct buf certificate = {0};
	struct buf key = {0};
	struct server *server = NULL;

	if ((options->tls_cert == NULL) != (options->tls_key == NULL))
		fputs("--tls-cert and --tls-key need each other\n", stderr);
	else if (parse_listen(listen, &settings) &&
			 (options->tls_cert == NULL ||
			  (read_file(options->tls_cert, &certificate) && read_file(options->tls_key, &key))))
	{
		settings.certificate = certificate.data;
		settings.key = key.data;
		server = server_start(service, &settings);
	}
	if (server != NULL)
	{
		bool v6 = strchr(settings.host, ':') != NULL;

		printf("listening on %s://%s%s%s:%d\n", certificate.data ? "https" : "http", v6 ? "[" : "",
			   settings.host, v6 ? "]" : "", server_port(server));
		fflush(stdout);
	}
	free((char *) settings.host);
	buf_free(&certificate);
	buf_free(&key);
	return server;
}

static int
next_wait(const struct service *service, const struct server *server)
{
	int64_t timer = timers_next(&service->timers) - timer_now();
	int wait = server_timeout(server);

	if (timer < 0)
		timer = 0;
	if (timer < 60 * SECOND && (wait < 0 || timer / MILLISECOND < wait))
		wait = (int) ((timer + MILLISECOND - 1) / MILLISECOND);
	return wait;
}

/* One event after another until a signal comes. */
static void
run(struct service *service, struct server *server, int signals)
{
	struct pollfd descriptors[4] = {
		{signals, POLLIN, 0},
		{server_descriptor(server), POLLIN, 0},
	};
	nfds_t count = 2;

	while ((descriptors[0].revents & POLLIN) == 0)
	{
		server_run(server);
		timers_run(&service->timers);
		service_settle(service);
		if (service->lookup != NULL)
		{
			lookup_settle(service->lookup);
			lookup_run(service->lookup);
			count = 2 + lookup_descriptors(service->lookup, descriptors + 2);
		}
		history_flush(service->history);
		poll(descriptors, count, next_wait(service, server));
	}
}

static int
block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void
remove_file(const char *path)
{
	if (path != NULL)
		unlink(path);
}

int
main(int argc, char **argv)
{
	struct options options = {0};
	struct service service;
	struct server *server = NULL;
	int code = options_parse(&options, argc, argv);
	int signals;

	if (code >= 0)
		return code;
	code = EXIT_USAGE;
	signals = block_signals();
	if (set_up(&service, &options) && (server = open_server(&service, &options)) != NULL)
	{
		if (write_number(options.pid_file, getpid()) &&
			write_number(options.port_file, server_port(server)))
		{
			run(&service, server, signals);
			code = 0;
		}
		server_stop(server);
		remove_file(options.port_file);
		remove_file(options.pid_file);
	}
	lookup_free(service.lookup);
	service_free(&service);
	faults_free(service.faults);
	tokens_free(service.tokens);
	history_close(service.history);
	close(signals);
	return code;
}
