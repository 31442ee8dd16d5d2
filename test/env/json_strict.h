/* SPDX-License-Identifier: PostgreSQL */
/*
 * The flag that makes json-c keep to the grammar of JSON. In version 0.18 it refuses every byte
 * above 0x7f, which it takes for a control character; that one is used without it.
 */
#ifndef INBOX_JSON_STRICT_H
#define INBOX_JSON_STRICT_H

#include <json-c/json.h>

#if JSON_C_MAJOR_VERSION == 0 && JSON_C_MINOR_VERSION == 18
#define JSON_STRICT 0
#else
#define JSON_STRICT JSON_TOKENER_STRICT
#endif

#endif
