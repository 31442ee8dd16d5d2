/* SPDX-License-Identifier: PostgreSQL */
/*
 * What the option table says, for people.
 */
#ifndef INBOX_HELP_H
#define INBOX_HELP_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Writes help: "text" for the terminal, "ini" as a sample file, "man" as the source of a manual
 * page, "bash" and "zsh" as a completion. False, with nothing written, for another format.
 */
bool help_write(FILE *out, const char *format) __attribute__((warn_unused_result));

#endif
