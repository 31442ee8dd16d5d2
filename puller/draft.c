/* SPDX-License-Identifier: PostgreSQL */
#include "draft.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "word.h"

void
draft_collect(const struct slice *object, struct draft_member *members, size_t count)
{
	struct slice_walk walk;
	struct slice name;
	struct slice value;

	slice_enter(&walk, object);
	while (slice_next_member(&walk, &name, &value))
	{
		for (size_t i = 0; i < count; i++)
		{
			if (slice_equals(&name, members[i].name, strlen(members[i].name)))
			{
				members[i].value = value;
				members[i].times++;
				break;
			}
		}
	}
}

void
draft_set_defect(struct draft *draft, enum message_defect defect, char *detail)
{
	struct message *message = draft->message;

	if (message->defect != DEFECT_NONE)
	{
		free(detail);
		return;
	}
	message->defect = defect;
	message->defect_detail = detail;
	if (defect != DEFECT_NO_KEY)
	{
		message->envelope_size = draft->envelope.length;
		message->envelope = memory_copy(draft->envelope.start, message->envelope_size);
	}
}

void
draft_set_flawed(struct draft *draft, unsigned flaws, const char *where)
{
	if ((flaws & ~FLAWS_OF_STORAGE) != 0)
	{
		draft_set_defect(draft, DEFECT_UNDECODABLE,
						 memory_format("%s in %s", scan_flaw_text(flaws), where));
	}
	else
	{
		draft_set_defect(
			draft, DEFECT_UNSTORABLE,
			memory_format("%s in %s, which PostgreSQL cannot store", scan_flaw_text(flaws), where));
	}
}

enum draft_reading
draft_lose(struct draft *draft, const struct draft_member *member, const char *what)
{
	draft_set_defect(draft, DEFECT_UNDECODABLE, memory_format("%s %s", member->name, what));
	return READING_LOST;
}

enum draft_reading
draft_read(struct draft *draft, const struct draft_member *member, char kind)
{
	const struct slice *value = &member->value;
	unsigned flaws;

	if (member->times > 1)
	{
		return draft_lose(draft, member, "occurs twice");
	}
	/* null is what proto3 JSON also allows for an absent field. */
	if (member->times == 0 || word_is(value->start, value->length, "null"))
	{
		return READING_ABSENT;
	}
	if (slice_kind(value) != kind)
	{
		return draft_lose(draft, member, kind == '"' ? "is not a string" : "is not an object");
	}
	flaws = draft->element->flaws != 0 ? scan_flaws(value) : 0;
	if (flaws != 0)
	{
		draft_set_flawed(draft, flaws, member->name);
		return READING_LOST;
	}
	return READING_FINE;
}
