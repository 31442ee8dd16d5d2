/* SPDX-License-Identifier: PostgreSQL */
/* The status page, status_page.html, which the linker put into the program. */
#ifndef INBOX_PAGE_H
#define INBOX_PAGE_H

#include <stddef.h>

const char *page_bytes(void);
size_t page_size(void);

/*
 * What Content-Security-Policy says of it: its own style and script run, named by their hashes, and
 * nothing else. free() it.
 */
char *page_policy(void);

#endif
