/* SPDX-License-Identifier: PostgreSQL */
#include "config_credential.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#include "credential_file.h"
#include "endpoint.h"
#include "grant.h"
#include "memory.h"
#include "url.h"

/* ---- a token in a file ---------------------------------------------------------------------- */

static bool
check_token(const struct config *config, struct fault *fault)
{
	const char *wrong = NULL;
	char *text = credential_slurp(config->token_file, &wrong);

	if (text != NULL && text[strspn(text, " \t\r\n\v\f")] == '\0')
	{
		wrong = "it is empty";
	}
	memory_forget(text);
	return wrong == NULL ||
		   fault_set(
			   fault,
			   memory_format("--token-file \"%s\" cannot be used: %s", config->token_file, wrong),
			   memory_copy_text("Put an access token into it that the puller may read."));
}

/* ---- credentials ---------------------------------------------------------------------------- */

/* A token is good in its own universe only, and must not be shown to another one. */
static bool
check_universe(const struct config *config, const struct credential *credential,
			   struct fault *fault)
{
	const char *universe = credential_universe(credential);

	return strcmp(universe, "googleapis.com") == 0 ||
		   strcmp(config->endpoint, ENDPOINT_DEFAULT) != 0 ||
		   fault_set(fault,
					 memory_format("%s is for the universe %s, and %s is not in it",
								   credential->place, universe, config->endpoint),
					 memory_format("Give --endpoint https://pubsub.%s.", universe));
}

static bool
check_credentials(const struct config *config, struct fault *fault)
{
	struct credential *credential = credential_load(config->credentials_file, fault);
	bool fine = credential != NULL && check_universe(config, credential, fault);

	credential_free(credential);
	return fine;
}

static bool
check_quota_project(struct fault *fault)
{
	const char *project = credential_quota_project(NULL);

	return project == NULL || grant_is_token(project) ||
		   fault_set(fault, memory_copy_text("GOOGLE_CLOUD_QUOTA_PROJECT is not a project"),
					 memory_copy_text("Set it to the id of a project, or unset it."));
}

/* ---- what does not go together -------------------------------------------------------------- */

static bool
check_emulator(const struct config *config, struct fault *fault)
{
	const char *option = config->token_file != NULL ? "--token-file" : "--credentials-file";

	if (config->token_file == NULL &&
		(config->credentials_file == NULL || config->db_auth == DB_AUTH_GCP_IAM))
	{
		return true;
	}
	return fault_set(fault,
					 memory_format("%s and PUBSUB_EMULATOR_HOST are both given, but an emulator "
								   "takes no credentials",
								   option),
					 memory_format("Unset PUBSUB_EMULATOR_HOST to consume the real service, or "
								   "leave %s out.",
								   option));
}

static bool
check_one_of_two(const struct config *config, struct fault *fault)
{
	return config->token_file == NULL || config->credentials_file == NULL ||
		   config->db_auth == DB_AUTH_GCP_IAM ||
		   fault_set(fault, memory_copy_text("--token-file and --credentials-file are both given"),
					 memory_copy_text("Leave one of them out."));
}

static bool
check_encryption(const struct config *config, struct fault *fault)
{
	return url_keeps_secrets(config->endpoint) ||
		   fault_set(
			   fault, memory_format("the token would be sent unencrypted to %s", config->endpoint),
			   memory_copy_text("Use an https:// endpoint; http:// is for this machine only."));
}

/* ---- authorities ---------------------------------------------------------------------------- */

static bool
holds_certificate(const char *text)
{
	BIO *bytes = BIO_new_mem_buf(text, -1);
	X509 *certificate = PEM_read_bio_X509(bytes, NULL, NULL, NULL);
	bool holds = certificate != NULL;

	X509_free(certificate);
	BIO_free(bytes);
	ERR_clear_error();
	return holds;
}

static bool
check_ca_file(const struct config *config, struct fault *fault)
{
	const char *wrong = NULL;
	char *text;

	if (config->ca_file == NULL)
	{
		return true;
	}
	text = credential_slurp(config->ca_file, &wrong);
	if (text != NULL && !holds_certificate(text))
	{
		wrong = "it holds no certificate in PEM";
	}
	free(text);
	return wrong == NULL ||
		   fault_set(fault,
					 memory_format("--ca-file \"%s\" cannot be used: %s", config->ca_file, wrong),
					 memory_copy_text("Name a file with the certificates of the authorities that "
									  "the puller is to trust."));
}

/* --------------------------------------------------------------------------------------------- */

static bool
check_pubsub(const struct config *config, struct fault *fault)
{
	if (config->emulator)
	{
		return check_emulator(config, fault);
	}
	return check_one_of_two(config, fault) && check_encryption(config, fault) &&
		   (config->token_file != NULL ? check_token(config, fault)
									   : check_credentials(config, fault));
}

/* The database's token is for the credentials, also where Pub/Sub has a token of its own. */
static bool
check_database(const struct config *config, struct fault *fault)
{
	bool checked = !config->emulator && config->token_file == NULL;

	return config->db_auth != DB_AUTH_GCP_IAM || checked || check_credentials(config, fault);
}

bool
config_credential_check(const struct config *config, struct fault *fault)
{
	return check_ca_file(config, fault) && check_quota_project(fault) &&
		   check_pubsub(config, fault) && check_database(config, fault);
}
