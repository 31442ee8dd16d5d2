/* SPDX-License-Identifier: PostgreSQL */
/*
 * Where Pub/Sub is, and with what credentials it is spoken to.
 */
#ifndef INBOX_ENDPOINT_H
#define INBOX_ENDPOINT_H

#include "config.h"
#include "fault.h"

#define ENDPOINT_DEFAULT "https://pubsub.googleapis.com"

/*
 * Settles endpoint and emulator from --endpoint, or PUBSUB_EMULATOR_HOST, or the default, and
 * checks that the credentials fit. The endpoint then has no slash at its end.
 */
bool endpoint_settle(struct config *config, struct fault *fault)
	__attribute__((warn_unused_result));

#endif
