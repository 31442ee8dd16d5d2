/* SPDX-License-Identifier: PostgreSQL */
/* What json-c makes of a text that was found sound. */
#ifndef INBOX_TEST_SECOND_OPINION_H
#define INBOX_TEST_SECOND_OPINION_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../test/env/json_strict.h"
#include "scan.h"

static inline void
fail(const char *what)
{
	fprintf(stderr, "unsound: %s\n", what);
	abort();
}

/* Ends the process when json-c does not take the whole text. Free with json_object_put(). */
static inline struct json_object *
parse(const char *text, size_t size)
{
	struct json_tokener *tokener = json_tokener_new_ex(SCAN_DEPTH_MAX + 2);
	struct json_object *object;

	json_tokener_set_flags(tokener, JSON_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text, (int) size);
	if (json_tokener_get_error(tokener) == json_tokener_continue)
	{
		/* A number at the very end is finished by the byte behind it. */
		object = json_tokener_parse_ex(tokener, "\n", 1);
	}
	if (json_tokener_get_error(tokener) != json_tokener_success)
	{
		fail("json-c refuses it");
	}
	json_tokener_free(tokener);
	return object;
}

#endif
