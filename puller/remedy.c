/* SPDX-License-Identifier: PostgreSQL */
#include "remedy.h"

#include <stddef.h>

/* What is wrong with the credential itself. */
static const char *
remedy_of_kind(enum credential_kind kind)
{
	switch (kind)
	{
		case CREDENTIAL_METADATA:
			return "without a file of credentials (--credentials-file, "
				   "GOOGLE_APPLICATION_CREDENTIALS, gcloud auth application-default login) this "
				   "needs the metadata server of Google Cloud (GCE_METADATA_HOST) and a service "
				   "account there; it is tried again by itself";
		case CREDENTIAL_SERVICE_ACCOUNT:
			return "the key may have been deleted or the account disabled, or the clock of this "
				   "machine is wrong; a new key in the same file is read by itself";
		case CREDENTIAL_USER:
		case CREDENTIAL_EXTERNAL_USER:
			return "the login may have ended or been revoked: run gcloud auth application-default "
				   "login; the file is read again by itself";
		case CREDENTIAL_EXTERNAL:
			return "check the source of the subject token, and the audience, issuer and condition "
				   "of the workload identity provider; all is read again by itself";
		case CREDENTIAL_IMPERSONATED:
		case CREDENTIAL_KINDS:
			break;
	}
	return NULL;
}

const char *
remedy_of(enum credential_kind kind, enum remedy_cause cause)
{
	/* That it is asked at all may be the mistake. */
	if (kind == CREDENTIAL_METADATA)
	{
		return remedy_of_kind(kind);
	}
	switch (cause)
	{
		case REMEDY_NOT_REACHED:
			return "it is tried again by itself; the server must be reachable, perhaps through "
				   "HTTPS_PROXY, and its certificate be in date, for its name, and from an "
				   "authority that is trusted (--ca-file)";
		case REMEDY_PASSING:
			return "it is tried again by itself";
		case REMEDY_NOT_IMPERSONATED:
			return "grant roles/iam.serviceAccountTokenCreator on the service account to the "
				   "source "
				   "(roles/iam.workloadIdentityUser to an external account), and enable "
				   "iamcredentials.googleapis.com";
		case REMEDY_NO_SUBJECT:
		case REMEDY_REFUSED:
			break;
	}
	return remedy_of_kind(kind);
}
