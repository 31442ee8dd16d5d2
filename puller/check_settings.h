/* SPDX-License-Identifier: PostgreSQL */
/*
 * What the settings of a subscription mean for inbox, read from the service's JSON. Only what is
 * not the default need be in there.
 */
#ifndef INBOX_CHECK_SETTINGS_H
#define INBOX_CHECK_SETTINGS_H

#include "check.h"

/* Reports on every setting but the dead-letter policy, which takes another question. */
void check_settings_report(struct check *check, struct json_object *subscription);

/* Members, of the type that is asked for; the object may be NULL. */
struct json_object *check_settings_object(struct json_object *object, const char *name);
const char *check_settings_text(struct json_object *object, const char *name);
long long check_settings_number(struct json_object *object, const char *name, long long initial);

/* How long acknowledged messages can be had again, in milliseconds; 0: not at all. */
int64_t check_settings_retained(struct json_object *subscription);

#endif
