/* SPDX-License-Identifier: PostgreSQL */
/*
 * Where the key of a message is found: the rules of --key, the first hit wins.
 *
 * attribute:NAME   the value of an attribute; an empty one is absent
 * json:/pointer    RFC 6901 into the payload; a non-empty string, or an integer of at most 18
 *                  digits in its source form
 * message-id       the id Pub/Sub gave the message, stored as mid:<id>; it does not survive a
 *                  publisher's retry, so uses of it are counted
 */
#ifndef INBOX_KEY_H
#define INBOX_KEY_H

#include <stdbool.h>
#include <stddef.h>

#define KEY_MAX_BYTES 1024
#define KEY_RULES_MAX 16

enum key_rule_kind
{
	KEY_ATTRIBUTE,
	KEY_JSON_POINTER,
	KEY_MESSAGE_ID
};

struct key_rule
{
	enum key_rule_kind kind;
	char *argument; /* the attribute's name or the pointer; NULL for message-id */
};

struct key_rules
{
	struct key_rule rule[KEY_RULES_MAX];
	size_t count;
};

/*
 * Parses one --key value and appends it. Returns NULL, or what is wrong with it as a sentence
 * (static storage).
 */
const char *key_rules_add(struct key_rules *rules, const char *text);

/* Frees what key_rules_add() allocated. */
void key_rules_free(struct key_rules *rules);

#endif
