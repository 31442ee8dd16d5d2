/* SPDX-License-Identifier: PostgreSQL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"

#define MANY 64

static struct message *messages[MANY];

static int
make_messages(void **state)
{
	(void) state;
	for (size_t i = 0; i < MANY; i++)
	{
		messages[i] = message_new();
		messages[i]->sequence = i;
	}
	return 0;
}

static int
free_messages(void **state)
{
	(void) state;
	for (size_t i = 0; i < MANY; i++)
	{
		message_free(messages[i]);
	}
	return 0;
}

/* Writes the places of the next run, as "3 4 5". */
static const char *
next_run(struct batch *batch, char text[256])
{
	struct message **run;
	size_t count = batch_run(batch, &run);
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < count; i++)
	{
		at += (size_t) snprintf(text + at, 256 - at, "%s%d", i > 0 ? " " : "",
								(int) run[i]->sequence);
	}
	return text;
}

static void
cuts_before_alone_and_behind(void **state)
{
	struct batch *batch = batch_new(messages, 5);
	char text[256];

	(void) state;
	assert_string_equal(next_run(batch, text), "0 1 2 3 4");
	batch_cut(batch, 2);
	assert_string_equal(next_run(batch, text), "0 1");
	batch_finish_run(batch);
	assert_string_equal(next_run(batch, text), "2");
	batch_finish_run(batch);
	assert_string_equal(next_run(batch, text), "3 4");
	batch_finish_run(batch);
	assert_string_equal(next_run(batch, text), "");
	batch_free(batch);
}

static void
cuts_at_either_end(void **state)
{
	struct batch *batch = batch_new(messages, 3);
	char text[256];

	(void) state;
	batch_cut(batch, 0);
	assert_string_equal(next_run(batch, text), "0");
	batch_finish_run(batch);
	assert_string_equal(next_run(batch, text), "1 2");
	batch_cut(batch, 1);
	assert_string_equal(next_run(batch, text), "1");
	batch_finish_run(batch);
	assert_string_equal(next_run(batch, text), "2");
	batch_free(batch);
}

static void
a_message_that_left_is_in_no_run(void **state)
{
	struct batch *batch = batch_new(messages, 5);
	struct message **rest;
	char text[256];

	(void) state;
	batch_cut(batch, 1);
	batch_finish_run(batch);
	batch_remove(batch, messages[3]);
	batch_remove(batch, messages[1]);
	assert_string_equal(next_run(batch, text), "2 4");
	assert_int_equal(batch_rest(batch, &rest), 2);
	/* The place counts what batch_run() gave, not what left. */
	batch_cut(batch, 1);
	assert_string_equal(next_run(batch, text), "2");
	batch_finish_run(batch);
	assert_string_equal(next_run(batch, text), "4");
	batch_free(batch);
}

/* Halving and cutting at random, every message is dealt with once, and in order. */
static void
deals_with_every_message_once_in_order(void **state)
{
	(void) state;
	srandom(20261130);
	for (int round = 0; round < 2000; round++)
	{
		struct batch *batch = batch_new(messages, MANY);
		struct message **run;
		uint64_t expected = 0;
		size_t count;

		while ((count = batch_run(batch, &run)) > 0)
		{
			long choice = random() % 3;

			if (count > 1 && choice == 0)
			{
				batch_halve(batch);
			}
			else if (count > 1 && choice == 1)
			{
				batch_cut(batch, (size_t) random() % count);
			}
			else
			{
				for (size_t i = 0; i < count; i++)
				{
					assert_int_equal(run[i]->sequence, expected++);
				}
				batch_finish_run(batch);
			}
		}
		assert_int_equal(expected, MANY);
		batch_free(batch);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_before_alone_and_behind),
		cmocka_unit_test(cuts_at_either_end),
		cmocka_unit_test(a_message_that_left_is_in_no_run),
		cmocka_unit_test(deals_with_every_message_once_in_order),
	};

	return cmocka_run_group_tests_name("batch", tests, make_messages, free_messages);
}
