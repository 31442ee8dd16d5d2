/* SPDX-License-Identifier: PostgreSQL */
#include "remedy.h"

#include <stddef.h>

const char *
remedy_of(enum credential_kind kind, bool impersonating)
{
	if (impersonating)
	{
		return "grant roles/iam.serviceAccountTokenCreator on the service account to the source "
			   "(roles/iam.workloadIdentityUser to an external account), and enable "
			   "iamcredentials.googleapis.com";
	}
	switch (kind)
	{
		case CREDENTIAL_METADATA:
			return "without a file of credentials (--credentials-file, "
				   "GOOGLE_APPLICATION_CREDENTIALS, gcloud auth application-default login) this "
				   "needs the metadata server of Google Cloud (GCE_METADATA_HOST) and a service "
				   "account there; it is asked again by itself";
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
