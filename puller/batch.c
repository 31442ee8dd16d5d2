/* SPDX-License-Identifier: PostgreSQL */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* Places from..to-1 of the batch. */
struct run
{
	size_t from;
	size_t to;
};

struct batch
{
	size_t count;
	struct message **messages; /* NULL where one left */
	struct message **view;	   /* what batch_run() and batch_rest() give out */
	size_t runs;
	size_t room;
	struct run *stack; /* the last is the next; together they go on in order */
};

static void
push(struct batch *batch, size_t from, size_t to)
{
	if (from >= to)
	{
		return;
	}
	if (batch->runs == batch->room)
	{
		batch->room = batch->room > 0 ? batch->room * 2 : 8;
		batch->stack = memory_resize(batch->stack, batch->room * sizeof(struct run));
	}
	batch->stack[batch->runs++] = (struct run){from, to};
}

struct batch *
batch_new(struct message *const *messages, size_t count)
{
	struct batch *batch = memory_new(sizeof(*batch));

	batch->count = count;
	batch->messages = memory_new(count * sizeof(struct message *));
	batch->view = memory_new(count * sizeof(struct message *));
	memcpy(batch->messages, messages, count * sizeof(struct message *));
	push(batch, 0, count);
	return batch;
}

void
batch_free(struct batch *batch)
{
	free(batch->messages);
	free(batch->view);
	free(batch->stack);
	free(batch);
}

static size_t
view(struct batch *batch, size_t from, size_t to)
{
	size_t seen = 0;

	for (size_t i = from; i < to; i++)
	{
		if (batch->messages[i] != NULL)
		{
			batch->view[seen++] = batch->messages[i];
		}
	}
	return seen;
}

size_t
batch_run(struct batch *batch, struct message ***messages)
{
	*messages = batch->view;
	while (batch->runs > 0)
	{
		struct run *run = &batch->stack[batch->runs - 1];
		size_t seen = view(batch, run->from, run->to);

		if (seen > 0)
		{
			return seen;
		}
		batch->runs--;
	}
	return 0;
}

void
batch_finish_run(struct batch *batch)
{
	struct run run = batch->stack[--batch->runs];

	for (size_t i = run.from; i < run.to; i++)
	{
		batch->messages[i] = NULL;
	}
}

/* The index in the batch of the run's message number "place". */
static size_t
index_of(const struct batch *batch, struct run run, size_t place)
{
	for (size_t i = run.from; i < run.to; i++)
	{
		if (batch->messages[i] != NULL && place-- == 0)
		{
			return i;
		}
	}
	abort(); /* no caller asks for a message that batch_run() did not give */
}

void
batch_cut(struct batch *batch, size_t place)
{
	struct run run = batch->stack[batch->runs - 1];
	size_t at = index_of(batch, run, place);

	batch->runs--;
	push(batch, at + 1, run.to);
	push(batch, at, at + 1);
	push(batch, run.from, at);
}

void
batch_halve(struct batch *batch)
{
	struct run run = batch->stack[batch->runs - 1];
	size_t middle = index_of(batch, run, view(batch, run.from, run.to) / 2);

	batch->runs--;
	push(batch, middle, run.to);
	push(batch, run.from, middle);
}

void
batch_remove(struct batch *batch, const struct message *message)
{
	for (size_t i = 0; i < batch->count; i++)
	{
		if (batch->messages[i] == message)
		{
			batch->messages[i] = NULL;
		}
	}
}

size_t
batch_rest(struct batch *batch, struct message ***messages)
{
	*messages = batch->view;
	return view(batch, 0, batch->count);
}
