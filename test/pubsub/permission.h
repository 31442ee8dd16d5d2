/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_PERMISSION_H
#define PUBSUB_PERMISSION_H

#include <stdbool.h>

struct problem;
struct request;

/*
 * What accounts may do: everything but the permissions that a test has denied, to all of them
 * (POST /control/permissions).
 */

/* False, with the problem that the real service has then, when the permission is denied. */
bool permission_check(const struct request *request, const char *permission,
					  struct problem *problem);

/* :testIamPermissions: those of the permissions asked for that are not denied. */
void permission_test(struct request *request);

/* {"denied": ["pubsub.subscriptions.get"]}: replaces what was denied before. */
void permission_deny(struct request *request);

#endif
