/* SPDX-License-Identifier: PostgreSQL */
#include "credential.h"

#include <string.h>

#include "jwt.h"
#include "memory.h"
#include "url.h"

#define IMPERSONATION "service_account_impersonation_url"

/* What a file of each kind must hold, and which of its members are addresses that get secrets. */
static const struct shape
{
	const char *type;
	const char *required[6];
	const char *urls[3];
} shapes[CREDENTIAL_KINDS] = {
	[CREDENTIAL_METADATA] = {.type = "metadata_server"},
	[CREDENTIAL_SERVICE_ACCOUNT] = {"service_account",
									{"client_email", "private_key"},
									{"token_uri"}},
	[CREDENTIAL_USER] = {"authorized_user",
						 {"client_id", "client_secret", "refresh_token"},
						 {"token_uri"}},
	[CREDENTIAL_IMPERSONATED] = {"impersonated_service_account", {IMPERSONATION}, {IMPERSONATION}},
	[CREDENTIAL_EXTERNAL] = {"external_account",
							 {"audience", "subject_token_type"},
							 {"token_url", IMPERSONATION}},
	[CREDENTIAL_EXTERNAL_USER] = {"external_account_authorized_user",
								  {"client_id", "client_secret", "refresh_token"},
								  {"token_url"}},
};

#define SUPPORTED                                                                          \
	"Supported are service_account, authorized_user, impersonated_service_account, and "   \
	"external_account with a file or a url as its source; without any file, the metadata " \
	"server of Google Cloud is asked."

const char *
credential_kind_name(enum credential_kind kind)
{
	return shapes[kind].type;
}

const char *
credential_member(struct json_object *object, const char *name)
{
	struct json_object *member;

	/* A NUL within would end it for all who read it. */
	return json_object_object_get_ex(object, name, &member) &&
				   json_object_is_type(member, json_type_string) &&
				   json_object_get_string_len(member) > 0 &&
				   strlen(json_object_get_string(member)) ==
					   (size_t) json_object_get_string_len(member)
			   ? json_object_get_string(member)
			   : NULL;
}

const char *
credential_text(const struct credential *credential, const char *name)
{
	return credential_member(credential->document, name);
}

struct json_object *
credential_subject(const struct credential *credential)
{
	struct json_object *subject;

	return json_object_object_get_ex(credential->document, "credential_source", &subject) &&
				   json_object_is_type(subject, json_type_object)
			   ? subject
			   : NULL;
}

const char *
credential_universe(const struct credential *credential)
{
	const char *universe = credential_text(credential, "universe_domain");

	return universe != NULL ? universe : "googleapis.com";
}

/* ---- what is wrong with it ------------------------------------------------------------------ */

static bool
fail(const struct credential *credential, char *what, const char *remedy, struct fault *fault)
{
	(void) fault_set(fault, memory_format("%s cannot be used: %s", credential->place, what),
					 memory_copy_text(remedy));
	free(what);
	return false;
}

static bool
check_members(const struct credential *credential, struct fault *fault)
{
	const struct shape *shape = &shapes[credential->kind];

	for (const char *const *name = shape->required; *name != NULL; name++)
	{
		if (credential_text(credential, *name) == NULL)
		{
			return fail(credential,
						memory_format("its type is %s and it has no \"%s\"", shape->type, *name),
						"Make the file anew; it is not meant to be written by hand.", fault);
		}
	}
	for (const char *const *name = shape->urls; *name != NULL; name++)
	{
		const char *url = credential_text(credential, *name);

		if (url != NULL && !url_keeps_secrets(url))
		{
			return fail(credential,
						memory_format("secrets would be sent unencrypted to its \"%s\"", *name),
						"It must be an https:// address; http:// is for this machine only.", fault);
		}
	}
	return true;
}

/* A header may hold no control character: it could smuggle in another one. */
static bool
are_headers(struct json_object *headers)
{
	json_object_object_foreach(headers, name, value)
	{
		const char *text =
			json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;

		if (text == NULL || strpbrk(name, "\r\n:") != NULL || strpbrk(text, "\r\n") != NULL)
		{
			return false;
		}
	}
	return true;
}

static bool
check_format(const struct credential *credential, struct json_object *source, struct fault *fault)
{
	struct json_object *format;
	struct json_object *headers;
	const char *type = NULL;

	if (json_object_object_get_ex(source, "format", &format))
	{
		type = credential_member(format, "type");
	}
	if (type != NULL && strcmp(type, "text") != 0 &&
		(strcmp(type, "json") != 0 ||
		 credential_member(format, "subject_token_field_name") == NULL))
	{
		return fail(credential, memory_copy_text("the format of its source is not understood"),
					"It is {\"type\": \"text\"}, or {\"type\": \"json\", "
					"\"subject_token_field_name\": …}.",
					fault);
	}
	if (json_object_object_get_ex(source, "headers", &headers) &&
		(!json_object_is_type(headers, json_type_object) || !are_headers(headers)))
	{
		return fail(credential, memory_copy_text("the headers of its source are not headers"),
					"Write them as an object of texts.", fault);
	}
	return true;
}

static bool
check_source(const struct credential *credential, struct fault *fault)
{
	static const char *const others[] = {"executable", "environment_id", "certificate"};
	struct json_object *source = credential_subject(credential);
	const char *url = credential_member(source, "url");

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
	{
		if (json_object_object_get_ex(source, others[i], NULL))
		{
			return fail(credential,
						memory_format("its type is external_account with a source by \"%s\", "
									  "which is not supported",
									  others[i]),
						SUPPORTED, fault);
		}
	}
	if (credential_member(source, "file") == NULL && url == NULL)
	{
		return fail(credential,
					memory_copy_text("its \"credential_source\" names neither a file nor a url"),
					SUPPORTED, fault);
	}
	if (url != NULL && strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
	{
		return fail(credential, memory_copy_text("the url of its source is not one of http"),
					"Write an http:// or https:// address.", fault);
	}
	return check_format(credential, source, fault);
}

static bool
check_key(const struct credential *credential, struct fault *fault)
{
	return jwt_key_is_usable(credential_text(credential, "private_key")) ||
		   fail(credential, memory_copy_text("its \"private_key\" is not an RSA key in PEM"),
				"Create a new key of the service account, and take its file as it is.", fault);
}

/* ---- making one ----------------------------------------------------------------------------- */

static bool
find_kind(struct credential *credential, struct fault *fault)
{
	const char *type = credential_text(credential, "type");

	if (type == NULL)
	{
		return fail(credential, memory_copy_text("it has no \"type\""), SUPPORTED, fault);
	}
	for (int kind = CREDENTIAL_METADATA + 1; kind < CREDENTIAL_KINDS; kind++)
	{
		if (strcmp(type, shapes[kind].type) == 0)
		{
			credential->kind = (enum credential_kind) kind;
			return true;
		}
	}
	return fail(credential, memory_format("its type is %s, which is not supported", type),
				SUPPORTED, fault);
}

static struct credential *make(struct json_object *document, const char *place,
							   struct fault *fault);

static bool
make_source(struct credential *credential, struct fault *fault)
{
	struct json_object *document;
	char *place;

	if (!json_object_object_get_ex(credential->document, "source_credentials", &document) ||
		!json_object_is_type(document, json_type_object))
	{
		return fail(credential, memory_copy_text("it has no \"source_credentials\""),
					"Make the file anew; it is not meant to be written by hand.", fault);
	}
	place = memory_format("%s, source_credentials", credential->place);
	credential->source = make(json_object_get(document), place, fault);
	free(place);
	if (credential->source != NULL && credential->source->kind == CREDENTIAL_IMPERSONATED)
	{
		return fail(credential, memory_copy_text("its source is itself impersonated"),
					"Name the accounts in between in \"delegates\".", fault);
	}
	return credential->source != NULL;
}

static bool
check(struct credential *credential, struct fault *fault)
{
	if (!find_kind(credential, fault) || !check_members(credential, fault))
	{
		return false;
	}
	switch (credential->kind)
	{
		case CREDENTIAL_SERVICE_ACCOUNT:
			return check_key(credential, fault);
		case CREDENTIAL_IMPERSONATED:
			return make_source(credential, fault);
		case CREDENTIAL_EXTERNAL:
			return check_source(credential, fault);
		case CREDENTIAL_METADATA:
		case CREDENTIAL_USER:
		case CREDENTIAL_EXTERNAL_USER:
		case CREDENTIAL_KINDS:
			break;
	}
	return true;
}

/* The email address in …/serviceAccounts/EMAIL:generateAccessToken. */
static char *
impersonated_account(const struct credential *credential)
{
	static const char before[] = "/serviceAccounts/";
	const char *url = credential_text(credential, IMPERSONATION);
	const char *email = url != NULL ? strstr(url, before) : NULL;

	email = email != NULL ? email + strlen(before) : NULL;
	return email != NULL ? memory_copy(email, strcspn(email, ":/?")) : NULL;
}

static char *
find_account(const struct credential *credential)
{
	static const char *const names[] = {"client_email", "account", "audience"};
	char *account = impersonated_account(credential);

	for (size_t i = 0; account == NULL && i < sizeof(names) / sizeof(names[0]); i++)
	{
		account = memory_copy_text(credential_text(credential, names[i]));
	}
	return account;
}

/* Takes the document over. */
static struct credential *
make(struct json_object *document, const char *place, struct fault *fault)
{
	struct credential *credential = memory_new(sizeof(*credential));

	credential->document = document;
	credential->place = memory_copy_text(place);
	if (!check(credential, fault))
	{
		credential_free(credential);
		return NULL;
	}
	credential->account = find_account(credential);
	return credential;
}

struct credential *
credential_parse(const char *text, const char *place, struct fault *fault)
{
	struct json_object *document = json_tokener_parse(text);

	if (!json_object_is_type(document, json_type_object))
	{
		json_object_put(document);
		(void) fault_set(fault, memory_format("%s cannot be used: it is not a JSON object", place),
						 memory_copy_text("Name a file of credentials as Google's tools write "
										  "it; a bare access token goes with --token-file."));
		return NULL;
	}
	return make(document, place, fault);
}

struct credential *
credential_of_machine(void)
{
	struct credential *credential = memory_new(sizeof(*credential));

	credential->kind = CREDENTIAL_METADATA;
	credential->place = memory_copy_text("the metadata server");
	return credential;
}

void
credential_free(struct credential *credential)
{
	if (credential == NULL)
	{
		return;
	}
	credential_free(credential->source);
	json_object_put(credential->document);
	free(credential->place);
	free(credential->account);
	free(credential);
}
