/* SPDX-License-Identifier: PostgreSQL */
#include "scan.h"

#include <stdlib.h>

#include "memory.h"
#include "names.h"
#include "word.h"

/* What JSON itself forbids, as against what it allows and we do not. */
#define FLAWS_OF_GRAMMAR (FLAW_UTF8 | FLAW_CONTROL | FLAW_WORD)

struct scan
{
	const char *text;
	const char *at;
	const char *end;
	struct names *names; /* NULL: nobody asks for duplicates */
	struct scan_elements *elements;
	bool received; /* receivedMessages has been seen */
	unsigned depth;
	unsigned flaws;
	struct scan_fault *fault;
};

/* Scans what stands in a container: the value of member "name", or an element without one. */
typedef bool scan_item(struct scan *scan, const struct slice *name);

static bool scan_value(struct scan *scan);

static bool
stop(struct scan *scan, const char *what)
{
	scan->fault->offset = (size_t) (scan->at - scan->text);
	scan->fault->what = what;
	return false;
}

static void
skip_space(struct scan *scan)
{
	while (scan->at < scan->end &&
		   (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\r' || *scan->at == '\t'))
	{
		scan->at++;
	}
}

/* Passes "byte" if it comes next. */
static bool
pass(struct scan *scan, char byte)
{
	skip_space(scan);
	if (scan->at == scan->end || *scan->at != byte)
	{
		return false;
	}
	scan->at++;
	return true;
}

static bool
scan_string(struct scan *scan)
{
	const char *what;
	const char *behind = literal_scan(scan->at, scan->end, &scan->flaws, &what);

	if (behind == NULL)
	{
		return stop(scan, what);
	}
	scan->at = behind;
	return true;
}

static bool
scan_word(struct scan *scan)
{
	size_t length = word_length(scan->at, scan->end);

	if (length == 0)
	{
		return stop(scan, "a value is expected");
	}
	if (!word_is_sound(scan->at, length))
	{
		scan->flaws |= FLAW_WORD;
	}
	scan->at += length;
	return true;
}

/* The members of an object, whose opening brace comes next. */
static bool
scan_object(struct scan *scan, scan_item *item)
{
	scan->at++;
	if (pass(scan, '}'))
	{
		return true;
	}
	do
	{
		struct slice name;

		skip_space(scan);
		name.start = scan->at;
		if (scan->at == scan->end || *scan->at != '"')
		{
			return stop(scan, "a member name is expected");
		}
		if (!scan_string(scan))
		{
			return false;
		}
		name.length = (size_t) (scan->at - name.start);
		if (!pass(scan, ':'))
		{
			return stop(scan, "':' is expected");
		}
		if (!item(scan, &name))
		{
			return false;
		}
	} while (pass(scan, ','));
	return pass(scan, '}') || stop(scan, "',' or '}' is expected");
}

static bool
scan_array(struct scan *scan, scan_item *item)
{
	scan->at++;
	if (pass(scan, ']'))
	{
		return true;
	}
	do
	{
		if (!item(scan, NULL))
		{
			return false;
		}
	} while (pass(scan, ','));
	return pass(scan, ']') || stop(scan, "',' or ']' is expected");
}

static bool
scan_any_item(struct scan *scan, const struct slice *name)
{
	if (name != NULL && scan->names != NULL && !names_add(scan->names, name))
	{
		scan->flaws |= FLAW_CROWDED;
	}
	return scan_value(scan);
}

static bool
scan_any_object(struct scan *scan)
{
	size_t mark = scan->names != NULL ? scan->names->count : 0;

	if (!scan_object(scan, scan_any_item))
	{
		return false;
	}
	if (scan->names != NULL && names_close(scan->names, mark))
	{
		scan->flaws |= FLAW_DUPLICATE;
	}
	return true;
}

static bool
scan_value(struct scan *scan)
{
	bool sound;

	skip_space(scan);
	if (scan->at == scan->end)
	{
		return stop(scan, "the text ends where a value is expected");
	}
	if (*scan->at == '"')
	{
		return scan_string(scan);
	}
	if (*scan->at != '{' && *scan->at != '[')
	{
		return scan_word(scan);
	}
	if (scan->depth == SCAN_DEPTH_MAX)
	{
		return stop(scan, "values are nested too deep");
	}
	scan->depth++;
	sound = *scan->at == '{' ? scan_any_object(scan) : scan_array(scan, scan_any_item);
	scan->depth--;
	return sound;
}

static bool
ends_here(struct scan *scan)
{
	skip_space(scan);
	return scan->at == scan->end || stop(scan, "something follows the end of the JSON text");
}

/* An element of receivedMessages: its flaws are its own. */
static bool
scan_received(struct scan *scan, const struct slice *name)
{
	struct scan_elements *elements = scan->elements;
	struct scan_element element;

	(void) name;
	skip_space(scan);
	element.slice.start = scan->at;
	if (!scan_value(scan))
	{
		return false;
	}
	element.slice.length = (size_t) (scan->at - element.slice.start);
	element.flaws = scan->flaws;
	scan->flaws = 0;
	if (elements->count == elements->room)
	{
		elements->room = elements->room > 0 ? elements->room * 2 : 64;
		elements->element =
			memory_resize(elements->element, elements->room * sizeof(*elements->element));
	}
	elements->element[elements->count++] = element;
	return true;
}

/* The value of receivedMessages; null is what proto3 JSON also allows for an empty list. */
static bool
scan_received_messages(struct scan *scan)
{
	if (scan->received)
	{
		return stop(scan, "receivedMessages occurs twice");
	}
	scan->received = true;
	skip_space(scan);
	if (scan->at < scan->end && *scan->at == '[')
	{
		return scan_array(scan, scan_received);
	}
	if (word_is(scan->at, word_length(scan->at, scan->end), "null"))
	{
		return scan_word(scan);
	}
	return stop(scan, "receivedMessages is not an array");
}

/* A member of the response itself. Outside of a message a flaw has nobody else to condemn. */
static bool
scan_response_member(struct scan *scan, const struct slice *name)
{
	static const char received[] = "receivedMessages";
	bool sound = slice_equals(name, received, sizeof(received) - 1) ? scan_received_messages(scan)
																	: scan_value(scan);

	if (sound && (scan->flaws & FLAWS_OF_GRAMMAR) != 0)
	{
		return stop(scan, "invalid JSON outside of a message");
	}
	scan->flaws = 0;
	return sound;
}

bool
scan_response(const char *text, size_t size, struct scan_elements *elements,
			  struct scan_fault *fault)
{
	struct names names;
	struct scan scan = {.text = text,
						.at = text,
						.end = text + size,
						.names = &names,
						.elements = elements,
						.fault = fault};

	names.count = 0;
	*elements = (struct scan_elements){0};
	skip_space(&scan);
	if (scan.at == scan.end)
	{
		return true;
	}
	if (*scan.at != '{')
	{
		return stop(&scan, "the response is not a JSON object");
	}
	if (!scan_object(&scan, scan_response_member) || !ends_here(&scan))
	{
		scan_elements_free(elements);
		return false;
	}
	return true;
}

void
scan_elements_free(struct scan_elements *elements)
{
	free(elements->element);
	*elements = (struct scan_elements){0};
}

bool
scan_document(const char *text, size_t size, struct slice *root, struct scan_fault *fault)
{
	struct scan scan = {.text = text, .at = text, .end = text + size, .fault = fault};

	skip_space(&scan);
	root->start = scan.at;
	if (!scan_value(&scan))
	{
		return false;
	}
	root->length = (size_t) (scan.at - root->start);
	if (!ends_here(&scan))
	{
		return false;
	}
	if ((scan.flaws & FLAWS_OF_GRAMMAR) != 0)
	{
		fault->offset = 0;
		fault->what = scan_flaw_text(scan.flaws & FLAWS_OF_GRAMMAR);
		return false;
	}
	return true;
}

unsigned
scan_flaws(const struct slice *slice)
{
	struct names names;
	struct scan_fault fault;
	struct scan scan = {.text = slice->start,
						.at = slice->start,
						.end = slice->start + slice->length,
						.names = &names,
						.fault = &fault};

	names.count = 0;
	/* The text has been passed before, so this cannot stop half-way. */
	return scan_value(&scan) ? scan.flaws : FLAW_WORD;
}

const char *
scan_flaw_text(unsigned flaws)
{
	return flaws & FLAW_UTF8		? "bytes that are not UTF-8"
		   : flaws & FLAW_CONTROL	? "a control character that is not escaped"
		   : flaws & FLAW_WORD		? "a word or number that JSON does not know"
		   : flaws & FLAW_DUPLICATE ? "the same name twice"
		   : flaws & FLAW_CROWDED	? "too many names"
		   : flaws & FLAW_NUL		? "U+0000"
		   : flaws & FLAW_SURROGATE ? "half of a surrogate pair"
									: NULL;
}
