/* SPDX-License-Identifier: PostgreSQL */
/*
 * What a shell has to know to complete a command line of the puller, from the option table.
 */
#ifndef INBOX_COMPLETION_H
#define INBOX_COMPLETION_H

#include <stdio.h>

/* For /usr/share/bash-completion/completions/inbox-puller, or to be sourced. */
void completion_write_bash(FILE *out);

/* For a folder of zsh's $fpath, as _inbox-puller. */
void completion_write_zsh(FILE *out);

#endif
