/* SPDX-License-Identifier: PostgreSQL */
#include "token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grant.h"
#include "log.h"
#include "memory.h"

#define TOKEN_MAX_BYTES 16384

static void
log_unreadable(struct token_file *file, const char *reason)
{
	if (file->complained)
	{
		return;
	}
	file->complained = true;
	log_event(
		LOG_ERROR, "token_unreadable", "file", LOG_TEXT, file->path, "err", LOG_TEXT, reason,
		"hint", LOG_TEXT,
		"write a fresh access token into the file of --token-file; it is read again by itself",
		NULL);
}

static char *
read_token(struct token_file *file, int opened)
{
	char bytes[TOKEN_MAX_BYTES + 1];
	ssize_t size = read(opened, bytes, TOKEN_MAX_BYTES);
	char *token;

	if (size < 0)
	{
		log_unreadable(file, strerror(errno));
		return NULL;
	}
	while (size > 0 && strchr(" \t\r\n", bytes[size - 1]) != NULL)
	{
		size--;
	}
	bytes[size] = '\0';
	if (!grant_is_token(bytes))
	{
		log_unreadable(file, "the file holds no token");
		return NULL;
	}
	file->complained = false;
	token = memory_copy_text(bytes);
	explicit_bzero(bytes, sizeof(bytes));
	return token;
}

char *
token_file_look(struct token_file *file, bool always)
{
	struct stat status;
	int opened = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *token = NULL;

	if (opened < 0 || fstat(opened, &status) != 0)
	{
		log_unreadable(file, strerror(errno));
	}
	else if (always || status.st_ino != file->inode ||
			 memcmp(&status.st_mtim, &file->changed, sizeof(file->changed)) != 0)
	{
		file->inode = status.st_ino;
		file->changed = status.st_mtim;
		token = read_token(file, opened);
	}
	if (opened >= 0)
	{
		close(opened);
	}
	return token;
}
