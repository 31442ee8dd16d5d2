/* SPDX-License-Identifier: PostgreSQL */
#include "shadow.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "puller.h"

void
shadow_free(struct shadow *shadow)
{
	for (size_t i = 0; i < shadow->errors; i++)
	{
		free(shadow->error[i].error);
		free(shadow->error[i].key);
	}
	*shadow = (struct shadow){0};
}

static struct shadow_error *
find_error(struct shadow *shadow, const struct failure *failure)
{
	const char *sqlstate = failure->sqlstate != NULL ? failure->sqlstate : "";

	for (size_t i = 0; i < shadow->errors; i++)
	{
		if (strcmp(shadow->error[i].sqlstate, sqlstate) == 0 &&
			strcmp(shadow->error[i].reason, failure->reason) == 0)
		{
			return &shadow->error[i];
		}
	}
	return NULL;
}

void
shadow_fail(struct shadow *shadow, const struct failure *failure, const struct message *message)
{
	struct shadow_error *error = find_error(shadow, failure);

	if (error == NULL && shadow->errors == SHADOW_ERRORS_MAX)
	{
		shadow->others++;
		return;
	}
	if (error == NULL)
	{
		error = &shadow->error[shadow->errors++];
		error->reason = failure->reason;
		error->error = memory_copy_text(failure->error);
		error->key = memory_copy_text(message->key);
		snprintf(error->sqlstate, sizeof(error->sqlstate), "%s",
				 failure->sqlstate != NULL ? failure->sqlstate : "");
	}
	error->count++;
}

/* Writes the bound that this part of the messages stayed within. */
static void
put_bound(const struct histogram *histogram, double part, FILE *out)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < histogram->bound_count; i++)
	{
		sum += histogram->bucket[i];
		if ((double) sum >= part * (double) histogram->count)
		{
			fprintf(out, "at most %g ms", histogram->bounds[i] * 1000);
			return;
		}
	}
	fprintf(out, "more than %g ms", histogram->bounds[histogram->bound_count - 1] * 1000);
}

static void
report_times(const struct histogram *handler, FILE *out)
{
	if (handler->count == 0)
	{
		return;
	}
	fprintf(out, "a message took %.2f ms on average; half of them ",
			handler->sum / (double) handler->count * 1000);
	put_bound(handler, 0.5, out);
	fputs(", 99 % ", out);
	put_bound(handler, 0.99, out);
	fputc('\n', out);
}

/* Errors may hold line breaks and more. */
static void
put_text(const char *text, FILE *out)
{
	for (const char *at = text; *at != '\0'; at++)
	{
		fputc((unsigned char) *at < ' ' || *at == 127 ? ' ' : *at, out);
	}
}

static void
report_error(const struct shadow_error *error, FILE *out)
{
	fprintf(out, "  %-5s %10llu  %s: ", error->sqlstate[0] != '\0' ? error->sqlstate : "-",
			(unsigned long long) error->count, error->reason);
	put_text(error->error != NULL ? error->error : "", out);
	fputs("; the first has the key ", out);
	put_text(error->key != NULL ? error->key : "(none)", out);
	fputc('\n', out);
}

/* A line for each verdict that was given, and one for each kind of error. */
void
shadow_report(const struct puller *puller, FILE *out)
{
	const struct shadow *shadow = &puller->shadow;

	fprintf(out, "%s would have made of %llu deliveries from %s:\n", puller->config->handler,
			(unsigned long long) puller->metrics.pulled, puller->config->subscription);
	for (int verdict = 0; verdict < METRICS_VERDICTS; verdict++)
	{
		uint64_t count = metrics_total(&puller->metrics, (enum metrics_verdict) verdict);

		if (count > 0)
		{
			fprintf(out, "  %-10s %10llu\n", metrics_verdict_name((enum metrics_verdict) verdict),
					(unsigned long long) count);
		}
	}
	report_times(&puller->metrics.handler, out);
	if (shadow->errors > 0)
	{
		fputs("what failed, by SQLSTATE:\n", out);
	}
	for (size_t i = 0; i < shadow->errors; i++)
	{
		report_error(&shadow->error[i], out);
	}
	if (shadow->others > 0)
	{
		fprintf(out, "  and %llu of other kinds\n", (unsigned long long) shadow->others);
	}
	fflush(out);
}
