/* SPDX-License-Identifier: PostgreSQL */
/*
 * Messages drawn from a seed, and their response written in one of the many ways JSON allows.
 */
#ifndef INBOX_TEST_ORIGINAL_H
#define INBOX_TEST_ORIGINAL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "buffer.h"
#include "utf8.h"

#define MESSAGES_MAX 4
#define ATTRIBUTES_MAX 12
#define TEXT_MAX 48

struct text
{
	char bytes[TEXT_MAX * 4 + 1];
	size_t size;
};

struct original
{
	struct text ack_id;
	struct text message_id;
	struct text ordering_key;
	struct text name[ATTRIBUTES_MAX];
	struct text value[ATTRIBUTES_MAX];
	unsigned attributes;
	unsigned char data[300];
	size_t data_size;
	unsigned delivery_attempt;
};

static uint64_t seed;

static inline unsigned
draw(unsigned below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned) (seed >> 33) % below;
}

/* A code point PostgreSQL can hold, of any length in UTF-8. */
static inline unsigned
draw_point(void)
{
	static const unsigned edges[] = {0x01,	 0x1F,	  '"',		'\\',	'/',	0x7F,
									 0x80,	 0x7FF,	  0x800,	0xD7FF, 0xE000, 0xFFFD,
									 0xFFFF, 0x10000, 0x10FFFF, 0x1F600};
	static const unsigned bounds[] = {0x80, 0x800, 0xD800};
	unsigned kind = draw(8);

	if (kind == 0)
	{
		return edges[draw(COUNT(edges))];
	}
	return kind < 5 ? 'a' + draw(26) : 1 + draw(bounds[kind - 5] - 1);
}

static inline void
append_utf8(struct text *text, unsigned point)
{
	static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
	unsigned size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	for (unsigned i = 0; i < size; i++)
	{
		unsigned bits = point >> (6 * (size - 1 - i));

		text->bytes[text->size++] = (char) (i == 0 ? lead[size] | bits : 0x80 | (bits & 0x3F));
	}
	text->bytes[text->size] = '\0';
}

static inline void
draw_text(struct text *text, unsigned least)
{
	unsigned points = least + draw(TEXT_MAX - least);

	text->size = 0;
	text->bytes[0] = '\0';
	for (unsigned i = 0; i < points; i++)
	{
		append_utf8(text, draw_point());
	}
}

static inline void
draw_original(struct original *original)
{
	draw_text(&original->ack_id, 1);
	draw_text(&original->message_id, 1);
	draw_text(&original->ordering_key, 0);
	original->attributes = 1 + draw(ATTRIBUTES_MAX);
	for (unsigned i = 0; i < original->attributes; i++)
	{
		/* No name twice: each begins with another letter. */
		original->name[i].size = 0;
		append_utf8(&original->name[i], 'A' + i);
		for (unsigned more = draw(6); more > 0; more--)
		{
			append_utf8(&original->name[i], draw_point());
		}
		draw_text(&original->value[i], i == 0 ? 1 : 0);
	}
	original->name[0] = (struct text){.bytes = "k", .size = 1};
	original->data_size = draw(2) == 0 ? draw(sizeof(original->data)) : draw(8);
	for (size_t i = 0; i < original->data_size; i++)
	{
		original->data[i] = (unsigned char) draw(256);
	}
	original->delivery_attempt = draw(20);
}

static inline void
put(struct buffer *out, const char *text)
{
	assert_true(buffer_append(out, text, strlen(text)));
}

static inline void
put_space(struct buffer *out)
{
	static const char *const spaces[] = {"", "", "", " ", "\n  ", "\t", "\r\n"};

	put(out, spaces[draw(COUNT(spaces))]);
}

static inline void
put_mark(struct buffer *out, const char *mark)
{
	put_space(out);
	put(out, mark);
	put_space(out);
}

/* A character of "size" bytes in one of its spellings. */
static inline void
put_character(struct buffer *out, const char *at, size_t size)
{
	static const char shortened[] = "\"\\/\b\f\n\r\t";
	static const char letters[] = "\"\\/bfnrt";
	const char *found = size == 1 ? strchr(shortened, *at) : NULL;
	unsigned point = (unsigned char) *at & (size == 1 ? 0x7F : 0x7F >> size);
	char escape[16];

	for (size_t i = 1; i < size; i++)
	{
		point = point << 6 | ((unsigned char) at[i] & 0x3F);
	}
	if (draw(3) > 0 && point >= 0x20 && point != '"' && point != '\\')
	{
		assert_true(buffer_append(out, at, size));
		return;
	}
	if (found != NULL && draw(2) > 0)
	{
		snprintf(escape, sizeof(escape), "\\%c", letters[found - shortened]);
	}
	else if (point >= 0x10000)
	{
		snprintf(escape, sizeof(escape), draw(2) ? "\\u%04x\\u%04x" : "\\u%04X\\u%04X",
				 0xD800 + ((point - 0x10000) >> 10), 0xDC00 + ((point - 0x10000) & 0x3FF));
	}
	else
	{
		snprintf(escape, sizeof(escape), draw(2) ? "\\u%04x" : "\\u%04X", point);
	}
	put(out, escape);
}

static inline void
put_string(struct buffer *out, const struct text *text)
{
	put(out, "\"");
	for (size_t at = 0; at < text->size;)
	{
		size_t size = utf8_character(text->bytes + at, text->size - at);

		assert_int_not_equal(size, 0);
		put_character(out, text->bytes + at, size);
		at += size;
	}
	put(out, "\"");
}

static inline void
put_name(struct buffer *out, const char *name)
{
	struct text text = {.size = strlen(name)};

	memcpy(text.bytes, name, text.size + 1);
	put_string(out, &text);
	put_mark(out, ":");
}

static inline void
put_attributes(struct buffer *out, const struct original *original)
{
	put_mark(out, "{");
	for (unsigned i = 0; i < original->attributes; i++)
	{
		put(out, i > 0 ? "," : "");
		put_space(out);
		put_string(out, &original->name[i]);
		put_mark(out, ":");
		put_string(out, &original->value[i]);
	}
	put_mark(out, "}");
}

static inline void
put_data(struct buffer *out, const struct original *original)
{
	char base64[512] = "";

	EVP_EncodeBlock((unsigned char *) base64, original->data, (int) original->data_size);
	put(out, "\"");
	put(out, base64);
	put(out, "\"");
}

static inline void
put_member(struct buffer *out, const struct original *original, unsigned member)
{
	switch (member)
	{
		case 0:
			put_name(out, "messageId");
			put_string(out, &original->message_id);
			break;
		case 1:
			put_name(out, "orderingKey");
			put_string(out, &original->ordering_key);
			break;
		case 2:
			put_name(out, "attributes");
			put_attributes(out, original);
			break;
		case 3:
			put_name(out, "data");
			put_data(out, original);
			break;
		default:
			put_name(out, "aMemberOfTheFuture");
			put(out, "[{\"messageId\":[]},-1.5E+3,\"]}\",null,{\"data\":{\"data\":true}}]");
	}
}

static inline void
put_message(struct buffer *out, const struct original *original)
{
	unsigned first = draw(5);

	put_mark(out, "{");
	for (unsigned i = 0; i < 5; i++)
	{
		put(out, i > 0 ? "," : "");
		put_space(out);
		put_member(out, original, (first + i) % 5);
	}
	put_mark(out, "}");
}

static inline void
put_element(struct buffer *out, const struct original *original)
{
	bool message_first = draw(2) == 0;
	char attempt[64];

	snprintf(attempt, sizeof(attempt), ",\"deliveryAttempt\":%u", original->delivery_attempt);
	put_mark(out, "{");
	if (message_first)
	{
		put_name(out, "message");
		put_message(out, original);
		put_mark(out, ",");
	}
	put_name(out, "ackId");
	put_string(out, &original->ack_id);
	put(out, attempt);
	if (!message_first)
	{
		put_mark(out, ",");
		put_name(out, "message");
		put_message(out, original);
	}
	put_mark(out, "}");
}

/* Draws messages and writes their response; returns how many. */
static inline unsigned
draw_response(struct original *originals, struct buffer *out)
{
	unsigned count = 1 + draw(MESSAGES_MAX);

	buffer_init(out, 1 << 20);
	put_mark(out, "{");
	put_name(out, "receivedMessages");
	put(out, "[");
	for (unsigned i = 0; i < count; i++)
	{
		put(out, i > 0 ? "," : "");
		draw_original(&originals[i]);
		put_element(out, &originals[i]);
	}
	put(out, "]");
	put_mark(out, "}");
	return count;
}

#endif
