/* SPDX-License-Identifier: PostgreSQL */
#include <errno.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../env/json_strict.h"
#include "body.h"
#include "buf.h"
#include "problem.h"
#include "timer.h"

struct json_object *
body_parse(const char *bytes, size_t len, struct problem *problem)
{
	struct json_tokener *tokener;
	struct json_object *object;
	enum json_tokener_error error;
	size_t end;

	if (len == 0)
		return json_object_new_object();
	tokener = json_tokener_new();
	json_tokener_set_flags(tokener, JSON_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS |
										JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, bytes, (int) len);
	error = json_tokener_get_error(tokener);
	end = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	while (end < len && isspace((unsigned char) bytes[end]))
		end++;
	if (error == json_tokener_success && end == len &&
		json_object_is_type(object, json_type_object))
		return object;
	json_object_put(object);
	problem_set(problem, STATUS_INVALID_ARGUMENT,
				"Invalid JSON payload received: the body has to be one JSON object; the parser "
				"stopped at byte %zu (%s).",
				end, json_tokener_error_desc(error));
	return NULL;
}

bool
body_same_name(const char *written, const char *name)
{
	while (*name != '\0')
	{
		if (*written == '_' && isupper((unsigned char) *name) &&
			written[1] == tolower((unsigned char) *name))
			written += 2;
		else if (*written == *name)
			written++;
		else
			return false;
		name++;
	}
	return *written == '\0';
}

struct json_object *
body_member(struct json_object *object, const char *name)
{
	struct json_object *value;

	if (json_object_object_get_ex(object, name, &value))
		return value;
	json_object_object_foreach(object, written, found)
	{
		if (body_same_name(written, name))
			return found;
	}
	return NULL;
}

bool
body_known(struct json_object *object, const char *const *names, struct problem *problem)
{
	json_object_object_foreach(object, written, value)
	{
		const char *const *name = names;

		(void) value;
		while (*name != NULL && !body_same_name(written, *name))
			name++;
		if (*name == NULL)
			return problem_set(problem, STATUS_INVALID_ARGUMENT,
							   "Invalid JSON payload received. Unknown name \"%.200s\": Cannot "
							   "find field.",
							   written);
	}
	return true;
}

static bool
wrong_type(const char *name, const char *wanted, struct json_object *value, struct problem *problem)
{
	return problem_set(problem, STATUS_INVALID_ARGUMENT, "Invalid value at '%s' (%s): %.200s", name,
					   wanted, json_object_to_json_string(value));
}

bool
body_take_int(struct json_object *object, const char *name, int64_t *result,
			  struct problem *problem)
{
	struct json_object *value = body_member(object, name);
	const char *text;
	char *end;
	int64_t number;

	if (value == NULL)
		return true;
	if (json_object_is_type(value, json_type_int))
	{
		*result = json_object_get_int64(value);
		return true;
	}
	if (!json_object_is_type(value, json_type_string))
		return wrong_type(name, "TYPE_INT32", value, problem);
	text = json_object_get_string(value);
	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0')
		return wrong_type(name, "TYPE_INT32", value, problem);
	*result = number;
	return true;
}

bool
body_take_bool(struct json_object *object, const char *name, bool *result, struct problem *problem)
{
	struct json_object *value = body_member(object, name);

	if (value == NULL)
		return true;
	if (!json_object_is_type(value, json_type_boolean))
		return wrong_type(name, "TYPE_BOOL", value, problem);
	*result = json_object_get_boolean(value);
	return true;
}

bool
body_take_string(struct json_object *object, const char *name, const char **result,
				 struct problem *problem)
{
	struct json_object *value = body_member(object, name);

	if (value == NULL)
		return true;
	if (!json_object_is_type(value, json_type_string))
		return wrong_type(name, "TYPE_STRING", value, problem);
	*result = json_object_get_string(value);
	return true;
}

bool
body_take_array(struct json_object *object, const char *name, struct json_object **result,
				struct problem *problem)
{
	struct json_object *value = body_member(object, name);

	if (value == NULL)
		return true;
	if (!json_object_is_type(value, json_type_array))
		return wrong_type(name, "a list", value, problem);
	*result = value;
	return true;
}

bool
body_take_object(struct json_object *object, const char *name, struct json_object **result,
				 struct problem *problem)
{
	struct json_object *value = body_member(object, name);

	if (value == NULL)
		return true;
	if (!json_object_is_type(value, json_type_object))
		return wrong_type(name, "an object", value, problem);
	*result = value;
	return true;
}

bool
body_take_duration(struct json_object *object, const char *name, int64_t *result,
				   struct problem *problem)
{
	struct json_object *value = body_member(object, name);
	const char *text = "";
	int64_t fraction = 0;
	int64_t unit = SECOND / 10;
	int64_t seconds;
	char *end;

	if (value == NULL)
		return true;
	if (json_object_is_type(value, json_type_string))
		text = json_object_get_string(value);
	errno = 0;
	seconds = strtoll(text, &end, 10);
	if (end != text && *end == '.')
	{
		for (end++; isdigit((unsigned char) *end); end++, unit /= 10)
			fraction += (*end - '0') * unit;
	}
	if (errno != 0 || end == text || strcmp(end, "s") != 0 || seconds < 0 ||
		seconds > INT64_C(315576000000) || !isdigit((unsigned char) *text))
		return wrong_type(name, "a duration such as \"600s\"", value, problem);
	if (seconds > INT64_MAX / SECOND - 1)
		seconds = INT64_MAX / SECOND - 1;
	*result = seconds * SECOND + fraction;
	return true;
}

struct json_object *
body_duration(int64_t nanoseconds)
{
	char text[48];

	if (nanoseconds % SECOND == 0)
		snprintf(text, sizeof(text), "%" PRId64 "s", nanoseconds / SECOND);
	else if (nanoseconds % MILLISECOND == 0)
		snprintf(text, sizeof(text), "%" PRId64 ".%03ds", nanoseconds / SECOND,
				 (int) (nanoseconds % SECOND / MILLISECOND));
	else
		snprintf(text, sizeof(text), "%" PRId64 ".%09ds", nanoseconds / SECOND,
				 (int) (nanoseconds % SECOND));
	return json_object_new_string(text);
}

void
body_render(struct json_object *document, struct buf *out)
{
	size_t len;
	const char *text = json_object_to_json_string_length(
		document,
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE, &len);

	buf_add(out, text, len);
	buf_text(out, "\n");
}
