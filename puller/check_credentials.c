/* SPDX-License-Identifier: PostgreSQL */
#include <stdlib.h>

#include "check.h"
#include "clock.h"
#include "config_credential.h"
#include "memory.h"

/* That there is a metadata server is known when it has answered. */
static void
report_credentials(struct check *check, const struct auth *auth, bool answered)
{
	const char *account = auth_account(auth);

	if (account != NULL)
	{
		check_report_ok(&check->report, "credentials",
						memory_format("%s of %s", auth_kind(auth), account));
	}
	else if (answered || check->config->token_file != NULL)
	{
		check_report_ok(&check->report, "credentials",
						memory_format("%s; it does not say whose", auth_kind(auth)));
	}
	else
	{
		check_report_note(&check->report, "credentials",
						  memory_format("%s, which has given nothing yet", auth_kind(auth)));
	}
}

/* A metadata server may take its time; what a person has to put right does not pass. */
static bool
await_token(struct check *check, struct auth *auth)
{
	int64_t limit = clock_ms() + CHECK_LIMIT_MS;
	bool hopeless = false;

	while (!auth_ready(auth, clock_ms()) && !hopeless && clock_ms() < limit)
	{
		auth_step(auth, clock_ms());
		check_step_http(check);
		hopeless = auth_is_hopeless(auth, clock_ms()) ||
				   (check->config->token_file != NULL && check->complaint.fact != NULL);
	}
	if (clock_ms() >= limit && check->complaint.fact == NULL)
	{
		(void) fault_set(&check->complaint,
						 memory_format("none came within %d s", CHECK_LIMIT_MS / 1000),
						 memory_copy_text("the servers that give tokens must be reachable, perhaps "
										  "through HTTPS_PROXY"));
	}
	return auth_ready(auth, clock_ms());
}

static void
report_token(struct check *check, const struct auth *auth)
{
	char *left;

	if (auth->expires_ms == CLOCK_NEVER)
	{
		check_report_ok(&check->report, "token", memory_copy_text("obtained"));
		return;
	}
	left = check_time((auth->expires_ms - clock_ms()) / 60000 * 60000);
	check_report_ok(&check->report, "token", memory_format("obtained, good for %s", left));
	free(left);
}

bool
check_credentials(struct check *check, struct auth *auth)
{
	bool ready;

	fault_free(&check->complaint);
	if (!config_credential_check(check->config, &check->complaint))
	{
		check_complain(check, "credentials");
		check_report_note(&check->report, "the rest",
						  memory_copy_text("not looked at without credentials"));
		return false;
	}
	if (check->config->emulator)
	{
		check_report_ok(&check->report, "credentials",
						memory_copy_text("none: an emulator takes none"));
		return true;
	}
	ready = await_token(check, auth);
	report_credentials(check, auth, ready);
	if (!ready)
	{
		check_complain(check, "token");
		check_report_note(&check->report, "the rest",
						  memory_copy_text("not looked at without a token"));
		return false;
	}
	report_token(check, auth);
	return true;
}
