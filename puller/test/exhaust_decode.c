/* SPDX-License-Identifier: PostgreSQL */
/* Memory runs out at every place while a response to a pull is decoded, and its configuration read. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "exhaust.h"

#include "decode.h"

static volatile bool decodes;

static char *
read_file(const char *path, size_t *size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	char *bytes;

	if (file < 0 || fstat(file, &status) != 0)
	{
		abort();
	}
	*size = (size_t) status.st_size;
	bytes = malloc(*size + 1);
	if (bytes == NULL || read(file, bytes, *size) != status.st_size)
	{
		abort();
	}
	close(file);
	return bytes;
}

static void
decode(const char *body, size_t size)
{
	static const char *const texts[] = {"attribute:k", "json:/a/0", "json:/id"};
	struct message_list list = TAILQ_HEAD_INITIALIZER(list);
	struct key_rules rules = {.count = 0};
	struct decode_error error;
	struct message *message;
	size_t skipped;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		if (key_rules_add(&rules, texts[i]) != NULL)
		{
			abort();
		}
	}
	(void) decode_pull_response(body, size, &rules, &list, &skipped, &error);
	while ((message = TAILQ_FIRST(&list)) != NULL)
	{
		TAILQ_REMOVE(&list, message, link);
		message_free(message);
	}
	key_rules_free(&rules);
}

static int
decode_file(const void *path)
{
	size_t size;
	char *body = read_file(path, &size);
	long before = live;

	decodes = true;
	decode(body, size);
	decodes = false;
	if (live != before)
	{
		printf("%ld blocks are not freed\n", live - before);
		return 1;
	}
	free(body);
	return 0;
}

int
main(int argc, char **argv)
{
	bool well = argc > 1;

	armed = &decodes;
	for (int i = 1; i < argc; i++)
	{
		well &= exhaust(argv[i], decode_file, argv[i]);
	}
	return well ? 0 : 1;
}
