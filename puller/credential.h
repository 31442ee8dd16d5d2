/* SPDX-License-Identifier: PostgreSQL */
/*
 * Credentials as Google's tools write them into a JSON file: of which kind they are, and that they
 * are complete. What cannot be used is refused by name, and nothing secret is in what is said.
 */
#ifndef INBOX_CREDENTIAL_H
#define INBOX_CREDENTIAL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "fault.h"

enum credential_kind
{
	CREDENTIAL_METADATA, /* no file: the metadata server of the machine or pod */
	CREDENTIAL_SERVICE_ACCOUNT,
	CREDENTIAL_USER,		  /* "authorized_user": gcloud auth application-default login */
	CREDENTIAL_IMPERSONATED,  /* a service account, by the right of the source */
	CREDENTIAL_EXTERNAL,	  /* "external_account": workload identity federation */
	CREDENTIAL_EXTERNAL_USER, /* "external_account_authorized_user": workforce identity */
	CREDENTIAL_KINDS
};

struct credential
{
	enum credential_kind kind;
	char *place;				  /* for people: where it is from */
	char *account;				  /* whose it is, as far as it says; or NULL */
	struct json_object *document; /* NULL for CREDENTIAL_METADATA */
	struct credential *source;	  /* of CREDENTIAL_IMPERSONATED, else NULL */
};

/*
 * From the text of a file; "place" is named in the fault, as in 'the file "/etc/key.json"'. NULL
 * when it cannot be used.
 */
struct credential *credential_parse(const char *text, const char *place, struct fault *fault)
	__attribute__((warn_unused_result));

/* Of the machine or pod itself. */
struct credential *credential_of_machine(void) __attribute__((returns_nonnull));

/* NULL is fine. */
void credential_free(struct credential *credential);

/* A member of the file, or NULL where it is missing, empty or no text. */
const char *credential_text(const struct credential *credential, const char *name);

/* The same of an object within it. */
const char *credential_member(struct json_object *object, const char *name);

/* As in the file's "type"; "metadata_server". */
const char *credential_kind_name(enum credential_kind kind);

/* Of an external account: "file" or "url", "headers" and "format". */
struct json_object *credential_subject(const struct credential *credential);

/* The part of Google's cloud it belongs to, "googleapis.com" nearly always. */
const char *credential_universe(const struct credential *credential);

#endif
