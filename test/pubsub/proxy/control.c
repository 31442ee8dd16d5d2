/* SPDX-License-Identifier: PostgreSQL */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "control.h"
#include "memory.h"

static void
do_trigger(struct proxy *proxy, const char *words, struct buf *answer)
{
	char problem[200] = "";
	struct trigger *trigger = trigger_parse(words, problem);

	if (trigger == NULL)
	{
		buf_printf(answer, "error: %s", problem);
		return;
	}
	trigger->number = ++proxy->triggers_made;
	list_append(&proxy->triggers, &trigger->link);
	buf_printf(answer, "ok %zu", trigger->number);
}

static void
do_clear(struct proxy *proxy, const char *words, struct buf *answer)
{
	(void) words;
	while (!list_empty(&proxy->triggers))
	{
		struct trigger *trigger = OWNER(proxy->triggers.next, struct trigger, link);

		link_remove(&trigger->link);
		trigger_free(trigger);
	}
	buf_text(answer, "ok");
}

static int
count(const struct link *list)
{
	int members = 0;

	for (const struct link *link = list->next; link != list; link = link->next)
		members++;
	return members;
}

static void
do_stats(struct proxy *proxy, const char *words, struct buf *answer)
{
	const struct totals *totals = &proxy->totals;
	const char *separator = "";

	(void) words;
	buf_printf(answer,
			   "{\"connections\":%" PRIu64 ",\"open\":%d,\"clientBytes\":%" PRIu64
			   ",\"serverBytes\":%" PRIu64 ",\"roundTrips\":%" PRIu64 ",\"commits\":%" PRIu64
			   ",\"fired\":%" PRIu64 ",\"triggers\":[",
			   totals->connections, count(&proxy->connections), totals->client_bytes,
			   totals->server_bytes, totals->round_trips, totals->commits, totals->fired);
	for (struct link *link = proxy->triggers.next; link != &proxy->triggers; link = link->next)
	{
		const struct trigger *trigger = OWNER(link, struct trigger, link);

		buf_printf(answer, "%s{\"trigger\":%zu,\"seen\":%" PRIu64 ",\"fired\":%" PRIu64 "}",
				   separator, trigger->number, trigger->seen, trigger->fired);
		separator = ",";
	}
	buf_text(answer, "]}");
}

static void
for_each(struct proxy *proxy, void (*act)(struct connection *connection))
{
	for (struct link *link = proxy->connections.next; link != &proxy->connections;
		 link = link->next)
		act(OWNER(link, struct connection, link));
}

static void
do_cut(struct proxy *proxy, const char *words, struct buf *answer)
{
	(void) words;
	for_each(proxy, connection_cut);
	buf_text(answer, "ok");
}

static void
stall(struct connection *connection)
{
	connection_stall(connection, true);
}

static void
resume(struct connection *connection)
{
	connection_stall(connection, false);
}

static void
do_stall(struct proxy *proxy, const char *words, struct buf *answer)
{
	(void) words;
	for_each(proxy, stall);
	buf_text(answer, "ok");
}

static void
do_resume(struct proxy *proxy, const char *words, struct buf *answer)
{
	(void) words;
	for_each(proxy, resume);
	buf_text(answer, "ok");
}

static void
do_refuse(struct proxy *proxy, const char *words, struct buf *answer)
{
	(void) words;
	proxy_refuse(proxy, true);
	buf_text(answer, "ok");
}

static void
do_accept(struct proxy *proxy, const char *words, struct buf *answer)
{
	(void) words;
	buf_text(answer, proxy_refuse(proxy, false) ? "ok" : "error: cannot listen again");
}

static void
do_latency(struct proxy *proxy, const char *words, struct buf *answer)
{
	proxy->latency = strtoll(words, NULL, 10) * MILLISECOND;
	buf_text(answer, "ok");
}

static void
do_to(struct proxy *proxy, const char *words, struct buf *answer)
{
	free(proxy->target);
	proxy->target = memory_copy(words);
	buf_text(answer, "ok");
}

void
control_command(struct proxy *proxy, const char *line, struct buf *answer)
{
	static const struct
	{
		const char *name;
		void (*run)(struct proxy *proxy, const char *words, struct buf *answer);
	} commands[] = {
		{"trigger", do_trigger}, {"clear", do_clear},	{"stats", do_stats},
		{"cut", do_cut},		 {"stall", do_stall},	{"resume", do_resume},
		{"refuse", do_refuse},	 {"accept", do_accept}, {"latency", do_latency},
		{"to", do_to},
	};
	size_t len = strcspn(line, " ");

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
	{
		if (strlen(commands[i].name) == len && strncmp(line, commands[i].name, len) == 0)
		{
			commands[i].run(proxy, line + len + strspn(line + len, " "), answer);
			return;
		}
	}
	buf_text(answer, "error: there are trigger, clear, stats, cut, stall, resume, refuse, accept, "
					 "latency and to");
}

void
control_new(struct proxy *proxy, int socket)
{
	struct control *control = memory_get(sizeof(*control));

	control->proxy = proxy;
	control->socket = socket;
	list_append(&proxy->controls, &control->link);
}

static void
work_off(struct control *control)
{
	char *rest = control->input.data;
	char *end;

	while ((end = strchr(rest, '\n')) != NULL)
	{
		struct buf answer = {0};

		*end = '\0';
		rest[strcspn(rest, "\r")] = '\0';
		control_command(control->proxy, rest, &answer);
		buf_text(&answer, "\n");
		/* A tester reads his answers; if not, they are his loss. */
		send(control->socket, answer.data, answer.len, MSG_NOSIGNAL);
		buf_free(&answer);
		rest = end + 1;
	}
	control->input.len -= (size_t) (rest - control->input.data);
	memmove(control->input.data, rest, control->input.len + 1);
}

void
control_run(struct control *control)
{
	char block[4096];
	ssize_t len = recv(control->socket, block, sizeof(block), 0);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0)
	{
		control_free(control);
		return;
	}
	buf_add(&control->input, block, (size_t) len);
	work_off(control);
}

void
control_free(struct control *control)
{
	link_remove(&control->link);
	close(control->socket);
	buf_free(&control->input);
	free(control);
}
