/* SPDX-License-Identifier: PostgreSQL */
#include "metrics.h"

#include <stdio.h>
#include <string.h>

void
metrics_init(struct metrics *metrics, const char *label)
{
	*metrics = (struct metrics){0};
	label_init(&metrics->label, label);
	histogram_init(&metrics->batch_size, histogram_sizes, histogram_size_count);
	histogram_init(&metrics->handler, histogram_durations, histogram_duration_count);
	histogram_init(&metrics->transaction, histogram_durations, histogram_duration_count);
	histogram_init(&metrics->age, histogram_ages, histogram_age_count);
}

void
metrics_free(struct metrics *metrics)
{
	label_free(&metrics->label);
}

uint64_t
metrics_total(const struct metrics *metrics, enum metrics_verdict verdict)
{
	uint64_t total = 0;

	for (size_t i = 0; i < metrics->label.count; i++)
	{
		total += metrics->messages[verdict][i];
	}
	return total;
}

const char *
metrics_verdict_name(enum metrics_verdict verdict)
{
	static const char *const name[METRICS_VERDICTS] = {
		[METRICS_APPLIED] = "applied",	 [METRICS_DUPLICATE] = "duplicate",
		[METRICS_CONFLICT] = "conflict", [METRICS_PARKED] = "parked",
		[METRICS_EXPIRED] = "expired",	 [METRICS_DEAD] = "dead",
		[METRICS_LATER] = "later",		 [METRICS_RETRYING] = "retrying",
		[METRICS_HALTED] = "halted",
	};

	return name[verdict];
}

void
metrics_batch(struct metrics *metrics, size_t messages, int64_t call_us, int64_t took_us)
{
	metrics->committed++;
	histogram_add(&metrics->batch_size, (double) messages, 1);
	histogram_add(&metrics->transaction, (double) took_us / 1e6, 1);
	if (messages > 0)
	{
		histogram_add(&metrics->handler, (double) call_us / 1e6 / (double) messages, messages);
	}
}

void
metrics_age(struct metrics *metrics, int64_t published_us, int64_t now_us)
{
	double age = (double) (now_us - published_us) / 1e6;

	if (published_us == INT64_MIN)
	{
		return;
	}
	histogram_add(&metrics->age, age, 1);
	if (age > metrics->age_max)
	{
		metrics->age_max = age;
	}
}

static bool
is_class_character(char character)
{
	return (character >= '0' && character <= '9') || (character >= 'A' && character <= 'Z');
}

/* The first two characters are the class; a server sends no other than these. */
static void
name_class(const char *sqlstate, char name[METRICS_CLASS_SIZE])
{
	if (sqlstate == NULL)
	{
		snprintf(name, METRICS_CLASS_SIZE, "none");
	}
	else if (is_class_character(sqlstate[0]) && is_class_character(sqlstate[1]))
	{
		snprintf(name, METRICS_CLASS_SIZE, "%.2s", sqlstate);
	}
	else
	{
		snprintf(name, METRICS_CLASS_SIZE, "other");
	}
}

void
metrics_failure(struct metrics *metrics, const char *sqlstate)
{
	char name[METRICS_CLASS_SIZE];

	name_class(sqlstate, name);
	for (size_t i = 0; i < metrics->failure_classes; i++)
	{
		if (strcmp(metrics->failure_class[i], name) == 0)
		{
			metrics->failures[i]++;
			return;
		}
	}
	if (metrics->failure_classes == METRICS_CLASSES_MAX - 1)
	{
		snprintf(name, sizeof(name), "other");
	}
	else if (metrics->failure_classes == METRICS_CLASSES_MAX)
	{
		metrics->failures[METRICS_CLASSES_MAX - 1]++;
		return;
	}
	memcpy(metrics->failure_class[metrics->failure_classes], name, sizeof(name));
	metrics->failures[metrics->failure_classes++] = 1;
}

/* FNV-1a; never 0. */
static uint64_t
hash(const char *key)
{
	uint64_t state = UINT64_C(0xCBF29CE484222325);

	for (; *key != '\0'; key++)
	{
		state = (state ^ (unsigned char) *key) * UINT64_C(0x100000001B3);
	}
	return state != 0 ? state : 1;
}

void
metrics_dead(struct metrics *metrics, const char *key)
{
	if (key != NULL)
	{
		metrics->dead_key[metrics->dead_keys++ % METRICS_DEAD_MAX] = hash(key);
	}
}

void
metrics_duplicate(struct metrics *metrics, const char *key)
{
	size_t known =
		metrics->dead_keys < METRICS_DEAD_MAX ? (size_t) metrics->dead_keys : METRICS_DEAD_MAX;
	uint64_t wanted;

	if (known == 0 || key == NULL)
	{
		return;
	}
	wanted = hash(key);
	for (size_t i = 0; i < known; i++)
	{
		if (metrics->dead_key[i] == wanted)
		{
			metrics->dead_duplicates++;
			return;
		}
	}
}
