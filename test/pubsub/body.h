/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_BODY_H
#define PUBSUB_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

struct buf;
struct problem;

/*
 * Reading of request bodies as the JSON form of protocol buffers wants it: names in camelCase or
 * snake_case, numbers also as strings, null as absence, unknown names refused.
 */

/* NULL and a problem unless the bytes are one JSON object; no bytes are an empty object. */
struct json_object *body_parse(const char *bytes, size_t len, struct problem *problem);

/* The member of that camelCase name, or NULL. Borrowed. */
struct json_object *body_member(struct json_object *object, const char *name);

/* Whether every member's name is in the list, which ends in NULL. */
bool body_known(struct json_object *object, const char *const *names, struct problem *problem);

/* Whether the name as written in a request is this camelCase name, perhaps in snake_case. */
bool body_same_name(const char *written, const char *name);

/*
 * Members by type. Absent members leave the result as it is; a wrong type is a problem. Strings
 * are borrowed from the object and may hold NUL bytes where a length is asked for.
 */
bool body_take_int(struct json_object *object, const char *name, int64_t *result,
				   struct problem *problem);
bool body_take_bool(struct json_object *object, const char *name, bool *result,
					struct problem *problem);
bool body_take_string(struct json_object *object, const char *name, const char **result,
					  struct problem *problem);
bool body_take_array(struct json_object *object, const char *name, struct json_object **result,
					 struct problem *problem);
bool body_take_object(struct json_object *object, const char *name, struct json_object **result,
					  struct problem *problem);

/* A duration such as "10s" or "1.5s", in nanoseconds. */
bool body_take_duration(struct json_object *object, const char *name, int64_t *result,
						struct problem *problem);
struct json_object *body_duration(int64_t nanoseconds);

/* Appends the document as Google's servers print it: two blanks a level, a final line break. */
void body_render(struct json_object *document, struct buf *out);

#endif
