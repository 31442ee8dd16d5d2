/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_PAGE_H
#define PUBSUB_PAGE_H

struct json_object;
struct lh_table;
struct request;

/*
 * Answers a list request with a page of a table: what belongs to request->name, pageSize members
 * from pageToken on. Either the full members of a project ("render"), or the names of those that
 * belong to a topic ("name_of", which gives NULL for the others).
 */
void page_reply(struct request *request, struct lh_table *table, const char *label,
				struct json_object *(*name_of)(void *member, const char *topic),
				struct json_object *(*render)(void *member));

#endif
