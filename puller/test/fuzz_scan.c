/* SPDX-License-Identifier: PostgreSQL */
/*
 * The scanner under libFuzzer (make fuzz): whatever the bytes of a payload, a key found in it can be
 * stored, and what was found sound JSON is sound to json-c too.
 */
#include <limits.h>
#include <stdint.h>

#include "key.h"
#include "second_opinion.h"
#include "sound.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
find_key(const char *text, size_t size, const struct key_rules *rules)
{
	const struct key_fields fields = {
		.data = (const unsigned char *) text, .data_size = size, .message_id = "1"};
	struct key key = key_find(rules, &fields);

	if (key.text != NULL && !is_storable_text(key.text, KEY_MAX_BYTES))
	{
		fail("key");
	}
	free(key.text);
	free(key.detail);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const texts[] = {"json:/a/0", "json:/id", "json:", "json:/a~1b//c"};
	const char *text = (const char *) bytes;
	struct key_rules rules = {.count = 0};
	struct slice root;
	struct scan_fault fault;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		if (key_rules_add(&rules, texts[i]) != NULL)
		{
			fail("rule");
		}
	}
	find_key(text, size, &rules);
	if (scan_document(text, size, &root, &fault))
	{
		json_object_put(parse(text, size));
	}
	key_rules_free(&rules);
	return 0;
}
