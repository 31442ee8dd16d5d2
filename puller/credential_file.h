/* SPDX-License-Identifier: PostgreSQL */
/*
 * Where credentials are found: Application Default Credentials, in the order of Google's own
 * libraries. --credentials-file, GOOGLE_APPLICATION_CREDENTIALS, what gcloud auth
 * application-default login has left behind, and then the metadata server.
 */
#ifndef INBOX_CREDENTIAL_FILE_H
#define INBOX_CREDENTIAL_FILE_H

#include "credential.h"

/*
 * Finds and reads them; "option" is --credentials-file or NULL. A file that is named and cannot be
 * used is a fault: nothing else is tried in its place. NULL with the fault, or credential_free().
 */
struct credential *credential_load(const char *option, struct fault *fault)
	__attribute__((warn_unused_result));

/* The bytes of a regular file of at most a megabyte, or NULL with what is wrong in "wrong". */
char *credential_slurp(const char *path, const char **wrong);

/*
 * The project that is charged: GOOGLE_CLOUD_QUOTA_PROJECT, else what the credentials say; NULL for
 * their own. Of no credential only the variable is asked.
 */
const char *credential_quota_project(const struct credential *credential);

#endif
