/* SPDX-License-Identifier: PostgreSQL */
/*
 * Reads an ini file into the configuration.
 *
 * Keys are the names of options and stand before any section or in [inbox-puller]. A list may go
 * on in lines that begin with a space, or be given again. What is not known, given twice or too
 * long is a fault that names the line.
 */
#ifndef INBOX_CONFIG_FILE_H
#define INBOX_CONFIG_FILE_H

#include "layer.h"

bool config_file_read(const char *path, struct layer *layer, struct fault *fault)
	__attribute__((warn_unused_result));

#endif
