/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_MESSAGE_H
#define PUBSUB_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;
struct problem;
struct service;

/*
 * A published message, shared by the subscriptions that hold it. Its JSON form is rendered once,
 * when it is published, indented for its place in the answer to a pull; the data are a part of
 * that text.
 */
struct message
{
	unsigned references;
	uint64_t id;
	int64_t published;				/* moment */
	char *ordering_key;				/* NULL: none */
	struct json_object *attributes; /* NULL: none */
	char *json;
	size_t json_len;
	size_t data_at; /* of the base64 text in json */
	size_t data_len;
	size_t size; /* bytes as the service counts them: data, attributes, ordering key */
};

/* The parts of a message before it has an id. Strings and attributes are borrowed. */
struct message_parts
{
	const char *data; /* base64, standard alphabet, padded */
	size_t data_len;
	struct json_object *attributes;
	const char *ordering_key;
	size_t size;
};

/* Reads a PubsubMessage of a publish request; the normalised data, if any, go to *owned. */
bool message_read(struct json_object *object, struct message_parts *parts, char **owned,
				  struct problem *problem);

/* A new message with the next id, with one reference. */
struct message *message_new(struct service *service, const struct message_parts *parts);
struct message *message_hold(struct message *message);
void message_release(struct message *message);

/* The value of an attribute, or NULL; borrowed. */
const char *message_attribute(const struct message *message, const char *name);

#endif
