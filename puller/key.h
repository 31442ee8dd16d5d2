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

#include "slice.h"

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

/* A rule as --key takes it; free() it. */
char *key_rule_text(const struct key_rule *rule);

/* Frees what key_rules_add() allocated. */
void key_rules_free(struct key_rules *rules);

/*
 * Where the rules look. A field that is there but could not be read is "lost": a rule that needs
 * it ends the search, as a later rule could give the message another key than its own.
 */
struct key_fields
{
	struct slice attributes; /* an object, without a start when absent */
	bool attributes_lost;
	const unsigned char *data; /* NULL when absent */
	size_t data_size;
	bool data_lost;
	const char *message_id; /* NULL when lost */
};

enum key_outcome
{
	KEY_FOUND,
	KEY_ABSENT, /* no rule hits */
	KEY_REFUSED /* a rule hits something that cannot be a key, or needs a lost field */
};

struct key
{
	enum key_outcome outcome;
	char *text;	  /* KEY_FOUND: 1 to KEY_MAX_BYTES bytes of UTF-8 without a NUL; else NULL */
	char *detail; /* one sentence on why there is no key; NULL with KEY_FOUND */
	bool from_message_id;
};

/*
 * Applies the rules in their order. A key is taken as it stands, byte for byte: nothing is folded,
 * trimmed or cut. In the payload, only what the pointer passes must be unambiguous; a payload that
 * is no JSON is one in which the pointer leads nowhere. The caller frees text and detail.
 */
struct key key_find(const struct key_rules *rules, const struct key_fields *fields);

#endif
