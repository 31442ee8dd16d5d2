/* SPDX-License-Identifier: PostgreSQL */
/* What a service manager hears, at a socket of the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "health.h"
#include "notify.h"

static enum health_state state;
static bool ready;
static int manager;
static char folder[64];
static char path[96];

enum health_state __wrap_health_state(const struct puller *puller, int64_t now);
enum health_state
__wrap_health_state(const struct puller *puller, int64_t now)
{
	(void) puller;
	(void) now;
	return state;
}

void __wrap_health_look(const struct puller *puller, int64_t now, struct health *health);
void
__wrap_health_look(const struct puller *puller, int64_t now, struct health *health)
{
	(void) puller;
	(void) now;
	memset(health, 0, sizeof(*health));
	health->ready = ready;
}

static int
start_manager(void **unused)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void) unused;
	strcpy(folder, "/tmp/inbox-notify-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	strcpy(address.sun_path, path);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(manager, (struct sockaddr *) &address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", path, 1);
	state = HEALTH_STARTING;
	ready = false;
	return 0;
}

static int
end_manager(void **unused)
{
	(void) unused;
	close(manager);
	unlink(path);
	rmdir(folder);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return 0;
}

static void
ask_for_life(long pid)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", pid);
	setenv("WATCHDOG_USEC", "30000000", 1);
	setenv("WATCHDOG_PID", text, 1);
}

/* All that has been said since the last question. */
static void
assert_heard(const char *expected)
{
	char heard[512] = "";
	size_t used = 0;
	ssize_t got;

	while ((got = recv(manager, heard + used, sizeof(heard) - used - 2, 0)) > 0)
	{
		used += (size_t) got;
		heard[used++] = ' ';
		heard[used] = '\0';
	}
	assert_string_equal(heard, expected);
}

static void
test_ready_once(void **unused)
{
	struct notify notify;

	(void) unused;
	notify_init(&notify);
	notify_step(&notify, NULL, 0);
	assert_heard("STATUS=starting ");
	notify_step(&notify, NULL, 1);
	assert_heard("");
	state = HEALTH_IDLE;
	ready = true;
	notify_step(&notify, NULL, 2);
	assert_heard("STATUS=idle READY=1 ");
	state = HEALTH_NO_DATABASE;
	notify_step(&notify, NULL, 3);
	assert_heard("STATUS=no_database ");
	state = HEALTH_WORKING;
	notify_step(&notify, NULL, 4);
	assert_heard("STATUS=working ");
	state = HEALTH_STOPPING;
	notify_step(&notify, NULL, 5);
	assert_heard("STATUS=stopping STOPPING=1 ");
	assert_true(notify_deadline(&notify) == CLOCK_NEVER);
	close(notify.socket);
}

static void
test_alive_twice_in_the_limit(void **unused)
{
	struct notify notify;

	(void) unused;
	ask_for_life((long) getpid());
	notify_init(&notify);
	notify_step(&notify, NULL, 1000);
	assert_heard("STATUS=starting WATCHDOG=1 ");
	assert_int_equal(notify_deadline(&notify), 16000);
	notify_step(&notify, NULL, 15999);
	assert_heard("");
	notify_step(&notify, NULL, 16000);
	assert_heard("WATCHDOG=1 ");
	close(notify.socket);
}

static void
test_watchdog_of_another_process(void **unused)
{
	struct notify notify;

	(void) unused;
	ask_for_life((long) getppid());
	notify_init(&notify);
	assert_true(notify_deadline(&notify) == CLOCK_NEVER);
	close(notify.socket);
}

/* It is gone, or there was none: nothing is waited for, and nothing breaks. */
static void
test_no_manager(void **unused)
{
	struct notify notify;

	(void) unused;
	notify_init(&notify);
	close(manager);
	unlink(path);
	notify_step(&notify, NULL, 0);
	close(notify.socket);
	notify_init(&notify);
	assert_int_equal(notify.socket, -1);
	notify_step(&notify, NULL, 0);
	setenv("NOTIFY_SOCKET", "relative", 1);
	notify_init(&notify);
	assert_int_equal(notify.socket, -1);
}

/* A manager that does not read has its socket full; the loop goes on. */
static void
test_deaf_manager(void **unused)
{
	struct notify notify;

	(void) unused;
	notify_init(&notify);
	for (int i = 0; i < 10000; i++)
	{
		state = i % 2 == 0 ? HEALTH_IDLE : HEALTH_WORKING;
		notify_step(&notify, NULL, i);
	}
	close(notify.socket);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ready_once, start_manager, end_manager),
		cmocka_unit_test_setup_teardown(test_alive_twice_in_the_limit, start_manager, end_manager),
		cmocka_unit_test_setup_teardown(test_watchdog_of_another_process, start_manager,
										end_manager),
		cmocka_unit_test_setup_teardown(test_no_manager, start_manager, end_manager),
		cmocka_unit_test_setup_teardown(test_deaf_manager, start_manager, end_manager),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
