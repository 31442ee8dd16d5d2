/* SPDX-License-Identifier: PostgreSQL */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "buf.h"
#include "filter.h"
#include "memory.h"
#include "problem.h"

#define MAX_FILTER 256

enum node
{
	NODE_HAS,
	NODE_EQUALS,
	NODE_PREFIX,
	NODE_NOT,
	NODE_AND,
	NODE_OR
};

struct filter
{
	enum node node;
	char *name;
	char *value;
	struct filter *left;
	struct filter *right;
};

struct parser
{
	const char *text;
	const char *at;
	struct problem *problem;
};

static struct filter *parse_expression(struct parser *parser);

static struct filter *
fail(struct parser *parser, const char *expected)
{
	problem_set(parser->problem, STATUS_INVALID_ARGUMENT,
				"Invalid filter: expected %s at character %d of: %s", expected,
				(int) (parser->at - parser->text) + 1, parser->text);
	return NULL;
}

static void
skip_blanks(struct parser *parser)
{
	while (isspace((unsigned char) *parser->at))
		parser->at++;
}

/* Takes the symbol if it comes next. */
static bool
take(struct parser *parser, const char *symbol)
{
	size_t len = strlen(symbol);

	skip_blanks(parser);
	if (strncmp(parser->at, symbol, len) != 0)
		return false;
	parser->at += len;
	return true;
}

static bool
is_name(char c)
{
	return isalnum((unsigned char) c) || c == '_' || c == '-';
}

/* Takes the word if it comes next as a whole. */
static bool
take_word(struct parser *parser, const char *word)
{
	const char *before = parser->at;

	if (take(parser, word) && !is_name(*parser->at))
		return true;
	parser->at = before;
	return false;
}

/* One character of a string after a backslash. */
static bool
parse_escape(struct parser *parser, struct buf *out)
{
	static const char *const plain = "abfnrtv";
	static const char *const meaning = "\a\b\f\n\r\t\v";
	const char *found = strchr(plain, *parser->at);
	char byte;

	if (*parser->at == '\0')
		return false;
	if (*parser->at == 'x' || (*parser->at >= '0' && *parser->at <= '7'))
	{
		bool hex = *parser->at == 'x';
		char digits[4] = {0};
		size_t len = hex ? 2 : 3;
		char *end;

		strncpy(digits, parser->at + hex, len);
		byte = (char) strtol(digits, &end, hex ? 16 : 8);
		if (end == digits)
			return false;
		parser->at += hex + (end - digits);
	}
	else
	{
		byte = found != NULL ? meaning[found - plain] : *parser->at;
		parser->at++;
	}
	buf_add(out, &byte, 1);
	return true;
}

static char *
parse_string(struct parser *parser)
{
	struct buf out = {0};

	if (!take(parser, "\""))
	{
		fail(parser, "a string in double quotes");
		return NULL;
	}
	buf_text(&out, "");
	while (*parser->at != '"')
	{
		bool good = *parser->at != '\0';

		if (good && *parser->at == '\\')
		{
			parser->at++;
			good = parse_escape(parser, &out);
		}
		else if (good)
			buf_add(&out, parser->at++, 1);
		if (!good)
		{
			fail(parser, "the rest of a string");
			buf_free(&out);
			return NULL;
		}
	}
	parser->at++;
	return out.data;
}

static char *
parse_name(struct parser *parser)
{
	const char *start;

	skip_blanks(parser);
	if (*parser->at == '"')
		return parse_string(parser);
	start = parser->at;
	while (is_name(*parser->at))
		parser->at++;
	if (parser->at > start)
		return memory_copy_bytes(start, (size_t) (parser->at - start));
	fail(parser, "the name of an attribute");
	return NULL;
}

static struct filter *
make(enum node node, struct filter *left, struct filter *right)
{
	struct filter *filter = memory_get(sizeof(*filter));

	filter->node = node;
	filter->left = left;
	filter->right = right;
	return filter;
}

/* The rest of a comparison whose left side is known: a string. */
static struct filter *
parse_value(struct parser *parser, enum node node, char *name)
{
	struct filter *filter = make(node, NULL, NULL);

	filter->name = name;
	filter->value = parse_string(parser);
	if (filter->value != NULL)
		return filter;
	filter_free(filter);
	return NULL;
}

/* After "attributes.": NAME = "value" or NAME != "value". */
static struct filter *
parse_equality(struct parser *parser)
{
	char *name = parse_name(parser);
	struct filter *filter;

	if (name == NULL)
		return NULL;
	if (take(parser, "="))
		return parse_value(parser, NODE_EQUALS, name);
	if (take(parser, "!="))
	{
		filter = parse_value(parser, NODE_EQUALS, name);
		return filter == NULL ? NULL : make(NODE_NOT, filter, NULL);
	}
	free(name);
	return fail(parser, "= or !=");
}

/* After "hasPrefix": (attributes.NAME, "value"). */
static struct filter *
parse_prefix(struct parser *parser)
{
	struct filter *filter;
	char *name;

	if (!take(parser, "(") || !take_word(parser, "attributes") || !take(parser, "."))
		return fail(parser, "(attributes.NAME, \"value\")");
	name = parse_name(parser);
	if (name == NULL)
		return NULL;
	if (!take(parser, ","))
	{
		free(name);
		return fail(parser, "a comma");
	}
	filter = parse_value(parser, NODE_PREFIX, name);
	if (filter == NULL || take(parser, ")"))
		return filter;
	filter_free(filter);
	return fail(parser, ")");
}

static struct filter *
parse_comparison(struct parser *parser)
{
	struct filter *filter;

	if (take_word(parser, "hasPrefix"))
		return parse_prefix(parser);
	if (!take_word(parser, "attributes"))
		return fail(parser, "attributes, hasPrefix, NOT or (");
	if (take(parser, "."))
		return parse_equality(parser);
	if (!take(parser, ":"))
		return fail(parser, ". or :");
	filter = make(NODE_HAS, NULL, NULL);
	filter->name = parse_name(parser);
	if (filter->name != NULL)
		return filter;
	filter_free(filter);
	return NULL;
}

static struct filter *
parse_term(struct parser *parser)
{
	struct filter *filter;

	if (take_word(parser, "NOT") || take(parser, "-"))
	{
		filter = parse_term(parser);
		return filter == NULL ? NULL : make(NODE_NOT, filter, NULL);
	}
	if (!take(parser, "("))
		return parse_comparison(parser);
	filter = parse_expression(parser);
	if (filter == NULL || take(parser, ")"))
		return filter;
	filter_free(filter);
	return fail(parser, ")");
}

/* Terms joined by AND alone or by OR alone: the service leaves a mixture undefined. */
static struct filter *
parse_expression(struct parser *parser)
{
	struct filter *filter = parse_term(parser);
	const char *joined = NULL;

	while (filter != NULL)
	{
		bool and = take_word(parser, "AND");
		struct filter *right;

		if (!and&&!take_word(parser, "OR"))
			break;
		if (joined != NULL && strcmp(joined, and? "AND" : "OR") != 0)
		{
			filter_free(filter);
			return fail(parser, "parentheses where AND and OR meet");
		}
		joined = and? "AND" : "OR";
		right = parse_term(parser);
		if (right == NULL)
		{
			filter_free(filter);
			return NULL;
		}
		filter = make(and? NODE_AND : NODE_OR, filter, right);
	}
	return filter;
}

struct filter *
filter_parse(const char *text, struct problem *problem)
{
	struct parser parser = {text, text, problem};
	struct filter *filter;

	if (strlen(text) > MAX_FILTER)
	{
		problem_set(problem, STATUS_INVALID_ARGUMENT,
					"Invalid filter: it has %zu bytes; the maximum is %d.", strlen(text),
					MAX_FILTER);
		return NULL;
	}
	filter = parse_expression(&parser);
	skip_blanks(&parser);
	if (filter == NULL || *parser.at == '\0')
		return filter;
	filter_free(filter);
	return fail(&parser, "AND, OR or the end");
}

bool
filter_match(const struct filter *filter, struct json_object *attributes)
{
	struct json_object *value = NULL;

	if (filter->name != NULL)
	{
		if (attributes == NULL || !json_object_object_get_ex(attributes, filter->name, &value))
			return false;
		if (filter->node == NODE_EQUALS)
			return strcmp(json_object_get_string(value), filter->value) == 0;
		return filter->node == NODE_HAS ||
			   strncmp(json_object_get_string(value), filter->value, strlen(filter->value)) == 0;
	}
	if (filter->node == NODE_NOT)
		return !filter_match(filter->left, attributes);
	if (filter->node == NODE_AND)
		return filter_match(filter->left, attributes) && filter_match(filter->right, attributes);
	return filter_match(filter->left, attributes) || filter_match(filter->right, attributes);
}

void
filter_free(struct filter *filter)
{
	if (filter == NULL)
		return;
	filter_free(filter->left);
	filter_free(filter->right);
	free(filter->name);
	free(filter->value);
	free(filter);
}
