/* SPDX-License-Identifier: PostgreSQL */
#include "notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "health.h"

/* False where the name is none that a manager gives. A leading @ stands for the abstract namespace. */
static bool
make_address(const char *name, struct sockaddr_un *address, socklen_t *length)
{
	size_t size = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || size >= sizeof(address->sun_path))
	{
		return false;
	}
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, name, size);
	if (name[0] == '@')
	{
		address->sun_path[0] = '\0';
	}
	*length = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + size);
	return true;
}

static int
open_socket(const char *name)
{
	struct sockaddr_un address;
	socklen_t length;
	int file;

	if (name == NULL || !make_address(name, &address, &length))
	{
		return -1;
	}
	file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (file >= 0 && connect(file, (struct sockaddr *) &address, length) != 0)
	{
		close(file);
		return -1;
	}
	return file;
}

/* The manager's WATCHDOG_USEC is meant for the process that WATCHDOG_PID names. */
static int64_t
read_watchdog(void)
{
	const char *limit = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");

	if (limit == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long) getpid()))
	{
		return 0;
	}
	return strtoll(limit, NULL, 10) / 1000 / 2;
}

void
notify_init(struct notify *notify)
{
	notify->socket = open_socket(getenv("NOTIFY_SOCKET"));
	notify->watchdog_ms = notify->socket >= 0 ? read_watchdog() : 0;
	notify->alive_ms = 0;
	notify->ready = false;
	notify->state = -1;
}

/* False when a manager that is restarting or busy did not hear it. */
static bool
tell(const struct notify *notify, const char *line)
{
	return send(notify->socket, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

static void
tell_state(struct notify *notify, const struct puller *puller, int64_t now)
{
	enum health_state state = health_state(puller, now);
	char line[128];

	if ((int) state == notify->state)
	{
		return;
	}
	notify->state = (int) state;
	snprintf(line, sizeof(line), "STATUS=%s", health_state_name(state));
	tell(notify, line);
	if (state == HEALTH_STOPPING)
	{
		tell(notify, "STOPPING=1");
	}
}

static void
tell_ready(struct notify *notify, const struct puller *puller, int64_t now)
{
	struct health health;

	if (!notify->ready)
	{
		health_look(puller, now, &health);
		notify->ready = health.ready && tell(notify, "READY=1");
	}
}

void
notify_step(struct notify *notify, const struct puller *puller, int64_t now)
{
	if (notify->socket < 0)
	{
		return;
	}
	tell_state(notify, puller, now);
	tell_ready(notify, puller, now);
	if (notify->watchdog_ms > 0 && now >= notify->alive_ms)
	{
		notify->alive_ms = now + notify->watchdog_ms;
		tell(notify, "WATCHDOG=1");
	}
}

int64_t
notify_deadline(const struct notify *notify)
{
	return notify->watchdog_ms > 0 ? notify->alive_ms : CLOCK_NEVER;
}
