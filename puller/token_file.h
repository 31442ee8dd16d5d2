/* SPDX-License-Identifier: PostgreSQL */
/*
 * A file that holds an access token, which somebody else keeps fresh (--token-file).
 */
#ifndef INBOX_TOKEN_FILE_H
#define INBOX_TOKEN_FILE_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

struct token_file
{
	const char *path;
	struct timespec changed; /* the file's time when it was read */
	ino_t inode;
	bool complained; /* about a file that cannot be used; once until it can */
};

/*
 * The token when the file is another one than the last time, or when "always"; NULL when it is
 * not, or cannot be used, which is logged. free() it by memory_forget().
 */
char *token_file_look(struct token_file *file, bool always);

#endif
