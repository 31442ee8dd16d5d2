/* SPDX-License-Identifier: PostgreSQL */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>
#include <json-c/linkhash.h>

#include "page.h"
#include "request.h"

static bool
in_project(const char *name, const char *project)
{
	size_t len = strlen(project);

	return strncmp(name, project, len) == 0 && name[len] == '/';
}

static long
number_of(const struct request *request, const char *parameter, long otherwise)
{
	const char *text = request_query(request, parameter);

	return text == NULL || *text == '\0' ? otherwise : strtol(text, NULL, 10);
}

void
page_reply(struct request *request, struct lh_table *table, const char *label,
		   struct json_object *(*name_of)(void *member, const char *topic),
		   struct json_object *(*render)(void *member))
{
	struct json_object *answer = json_object_new_object();
	struct json_object *array = json_object_new_array();
	long size = number_of(request, "pageSize", 1000);
	long skip = number_of(request, "pageToken", 0);
	long seen = 0;
	struct lh_entry *entry;
	char token[24];

	if (size <= 0 || size > 1000)
		size = 1000;
	lh_foreach(table, entry)
	{
		struct json_object *member = NULL;

		if (name_of != NULL)
			member = name_of((void *) lh_entry_v(entry), request->name);
		else if (in_project(lh_entry_k(entry), request->name))
			member = render((void *) lh_entry_v(entry));
		if (member == NULL)
			continue;
		seen++;
		if (seen > skip && seen <= skip + size)
			json_object_array_add(array, member);
		else
			json_object_put(member);
	}
	if (json_object_array_length(array) > 0)
		json_object_object_add(answer, label, json_object_get(array));
	if (seen > skip + size)
	{
		snprintf(token, sizeof(token), "%ld", skip + size);
		json_object_object_add(answer, "nextPageToken", json_object_new_string(token));
	}
	json_object_put(array);
	request_reply(request, answer);
}
