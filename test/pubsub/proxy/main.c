/* SPDX-License-Identifier: PostgreSQL */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "control.h"
#include "memory.h"

#ifndef INBOX_VERSION
#define INBOX_VERSION "unknown"
#endif

#define EXIT_USAGE 1

static const char usage[] =
	"inbox-proxy: a TCP proxy that cuts, stalls and delays connections at chosen bytes\n\n"
	"Usage: inbox-proxy --to TARGET [OPTION]...\n\n"
	"  --to TARGET          forward to ADDRESS:PORT, or to a Unix socket by its path\n"
	"  --listen HOST:PORT   where to listen (default 127.0.0.1:0)\n"
	"  --control HOST:PORT  where to listen for commands (default 127.0.0.1:0)\n"
	"  --protocol NAME      tcp, postgres or http: whose points to find (default tcp)\n"
	"  --trigger WORDS      such as \"on=commit-query nth=2 do=cut\"; may be repeated\n"
	"  --latency MS         hold every byte for so long, in each direction\n"
	"  --port-file FILE     write the two ports here; removed at the end\n"
	"  --pid-file FILE      write the process id here; removed at the end\n"
	"  --help\n"
	"  --version\n\n"
	"It prints \"listening on HOST:PORT, control on HOST:PORT\" when it is ready. SIGUSR1 cuts\n"
	"all connections, SIGTERM ends it.\n";

struct options
{
	const char *listen;
	const char *control;
	const char *port_file;
	const char *pid_file;
};

static bool
parse_protocol(struct proxy *proxy, const char *name)
{
	static const char *const names[] = {"tcp", "postgres", "http"};

	for (int i = PROTOCOL_TCP; i <= PROTOCOL_HTTP; i++)
	{
		if (strcmp(name, names[i]) == 0)
		{
			proxy->protocol = (enum protocol) i;
			return true;
		}
	}
	fprintf(stderr, "--protocol %s: it has to be tcp, postgres or http\n", name);
	return false;
}

/* An option that is a command to the proxy. */
static bool
command(struct proxy *proxy, const char *name, const char *words)
{
	struct buf line = {0};
	struct buf answer = {0};
	bool good;

	buf_printf(&line, "%s %s", name, words);
	control_command(proxy, line.data, &answer);
	good = strncmp(answer.data, "ok", 2) == 0;
	if (!good)
		fprintf(stderr, "--%s %s: %s\n", name, words, answer.data);
	buf_free(&line);
	buf_free(&answer);
	return good;
}

/* Returns -1 to go on, or the code to exit with. */
static int
parse_options(struct options *options, struct proxy *proxy, int argc, char **argv)
{
	static const struct option longs[] = {
		{"to", required_argument, NULL, 't'},
		{"listen", required_argument, NULL, 'l'},
		{"control", required_argument, NULL, 'c'},
		{"protocol", required_argument, NULL, 'p'},
		{"trigger", required_argument, NULL, 'r'},
		{"latency", required_argument, NULL, 'y'},
		{"port-file", required_argument, NULL, 'f'},
		{"pid-file", required_argument, NULL, 'i'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{NULL, 0, NULL, 0},
	};
	bool good = true;
	int found;

	while (good && (found = getopt_long(argc, argv, "", longs, NULL)) >= 0)
	{
		if (found == 'h' || found == 'v')
		{
			fputs(found == 'h' ? usage : "inbox-proxy " INBOX_VERSION "\n", stdout);
			return 0;
		}
		if (found == 'l')
			options->listen = optarg;
		else if (found == 'c')
			options->control = optarg;
		else if (found == 'f')
			options->port_file = optarg;
		else if (found == 'i')
			options->pid_file = optarg;
		else if (found == 'p')
			good = parse_protocol(proxy, optarg);
		else if (found == 't' || found == 'r' || found == 'y')
			good = command(proxy,
						   found == 't'	  ? "to"
						   : found == 'r' ? "trigger"
										  : "latency",
						   optarg);
		else
			good = false;
	}
	if (good && optind == argc && proxy->target != NULL)
		return -1;
	fputs("Try inbox-proxy --help.\n", stderr);
	return EXIT_USAGE;
}

/* The address as given, with the port that was got. */
static char *
with_port(const char *address, int port)
{
	struct buf text = {0};

	buf_printf(&text, "%.*s:%d", (int) (strrchr(address, ':') - address), address, port);
	return text.data;
}

static bool
write_file(const char *path, const char *text)
{
	struct buf other = {0};
	FILE *file;
	bool good;

	if (path == NULL)
		return true;
	buf_printf(&other, "%s.new", path);
	file = fopen(other.data, "we");
	good = file != NULL && fputs(text, file) >= 0;
	if (file != NULL)
		good = fclose(file) == 0 && good;
	good = good && rename(other.data, path) == 0;
	if (!good)
		perror(path);
	buf_free(&other);
	return good;
}

static bool
open_listeners(struct proxy *proxy, const struct options *options)
{
	int port = 0;
	int control_port = 0;
	char *control;
	char text[64];
	bool good;

	proxy->listener = proxy_listen(options->listen, &port);
	proxy->control_listener = proxy_listen(options->control, &control_port);
	if (proxy->listener < 0 || proxy->control_listener < 0)
		return false;
	proxy->address = with_port(options->listen, port);
	control = with_port(options->control, control_port);
	printf("listening on %s, control on %s\n", proxy->address, control);
	fflush(stdout);
	free(control);
	snprintf(text, sizeof(text), "%ld\n", (long) getpid());
	good = write_file(options->pid_file, text);
	snprintf(text, sizeof(text), "%d %d\n", port, control_port);
	return good && write_file(options->port_file, text);
}

static int
open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* False when it is time to end. */
static bool
take_signals(struct proxy *proxy, int signals)
{
	struct signalfd_siginfo info;
	struct buf answer = {0};
	bool go_on = true;

	while (read(signals, &info, sizeof(info)) == sizeof(info))
	{
		if (info.ssi_signo == SIGUSR1)
			control_command(proxy, "cut", &answer);
		else
			go_on = false;
	}
	buf_free(&answer);
	return go_on;
}

static void
take_connections(int listener, struct proxy *proxy, void (*make)(struct proxy *, int))
{
	int client;

	while (listener >= 0 &&
		   (client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		make(proxy, client);
}

static void
run_connections(struct proxy *proxy)
{
	struct link *next;

	for (struct link *link = proxy->controls.next; link != &proxy->controls; link = next)
	{
		next = link->next;
		control_run(OWNER(link, struct control, link));
	}
	for (struct link *link = proxy->connections.next; link != &proxy->connections; link = next)
	{
		struct connection *connection = OWNER(link, struct connection, link);

		next = link->next;
		if (!connection->dead)
			connection_run(connection);
		if (connection->dead)
			connection_free(connection);
	}
}

/* Fills the list of what to wait for; the caller's array grows as needed. */
static nfds_t
collect(struct proxy *proxy, int signals, struct pollfd **list, size_t *room)
{
	nfds_t count = 3;

	for (struct link *link = proxy->connections.next; link != &proxy->connections;
		 link = link->next)
		count += 2;
	for (struct link *link = proxy->controls.next; link != &proxy->controls; link = link->next)
		count++;
	if (count > *room)
	{
		*room = 2 * count;
		*list = memory_resize(*list, *room * sizeof(**list));
	}
	(*list)[0] = (struct pollfd){signals, POLLIN, 0};
	(*list)[1] = (struct pollfd){proxy->listener, POLLIN, 0};
	(*list)[2] = (struct pollfd){proxy->control_listener, POLLIN, 0};
	count = 3;
	for (struct link *link = proxy->connections.next; link != &proxy->connections;
		 link = link->next, count += 2)
		connection_poll(OWNER(link, struct connection, link), *list + count);
	for (struct link *link = proxy->controls.next; link != &proxy->controls; link = link->next)
		(*list)[count++] = (struct pollfd){OWNER(link, struct control, link)->socket, POLLIN, 0};
	return count;
}

static int
next_wait(const struct proxy *proxy)
{
	int64_t left = timers_next(&proxy->timers) - timer_now();

	if (left > 60 * SECOND)
		return -1;
	return left < 0 ? 0 : (int) ((left + MILLISECOND - 1) / MILLISECOND);
}

static void
run(struct proxy *proxy, int signals)
{
	struct pollfd *list = NULL;
	size_t room = 0;

	while (take_signals(proxy, signals))
	{
		nfds_t count;

		timers_run(&proxy->timers);
		take_connections(proxy->listener, proxy, connection_new);
		take_connections(proxy->control_listener, proxy, control_new);
		run_connections(proxy);
		count = collect(proxy, signals, &list, &room);
		poll(list, count, next_wait(proxy));
	}
	free(list);
}

static void
close_all(struct proxy *proxy)
{
	struct buf answer = {0};

	control_command(proxy, "clear", &answer);
	buf_free(&answer);
	while (!list_empty(&proxy->connections))
		connection_free(OWNER(proxy->connections.next, struct connection, link));
	while (!list_empty(&proxy->controls))
		control_free(OWNER(proxy->controls.next, struct control, link));
	timers_free(&proxy->timers);
	free(proxy->target);
	free(proxy->address);
}

int
main(int argc, char **argv)
{
	struct options options = {.listen = "127.0.0.1:0", .control = "127.0.0.1:0"};
	struct proxy proxy = {.listener = -1, .control_listener = -1};
	int signals = open_signals();
	int code;

	list_init(&proxy.connections);
	list_init(&proxy.controls);
	list_init(&proxy.triggers);
	code = parse_options(&options, &proxy, argc, argv);
	if (code < 0 && open_listeners(&proxy, &options))
	{
		run(&proxy, signals);
		code = 0;
	}
	if (code == 0 && options.port_file != NULL)
		unlink(options.port_file);
	if (code == 0 && options.pid_file != NULL)
		unlink(options.pid_file);
	close_all(&proxy);
	return code < 0 ? EXIT_USAGE : code;
}
