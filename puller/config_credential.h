/* SPDX-License-Identifier: PostgreSQL */
/*
 * Whether the credentials that the configuration leads to can be used, and are safe where they go.
 */
#ifndef INBOX_CONFIG_CREDENTIAL_H
#define INBOX_CONFIG_CREDENTIAL_H

#include "config.h"
#include "fault.h"

/* Of a configuration whose endpoint is settled. */
bool config_credential_check(const struct config *config, struct fault *fault)
	__attribute__((warn_unused_result));

#endif
