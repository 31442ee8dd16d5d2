/* SPDX-License-Identifier: PostgreSQL */
#include "credential_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

#define VARIABLE "GOOGLE_APPLICATION_CREDENTIALS"
#define WELL_KNOWN "application_default_credentials.json"
#define SIZE_MAX_BYTES ((size_t) 1024 * 1024)

static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

static char *
read_all(int file, const char **wrong)
{
	struct stat status;
	char *bytes;
	size_t size = 0;
	ssize_t got = 1;

	if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
	{
		*wrong = "it is not a regular file";
		return NULL;
	}
	if ((size_t) status.st_size > SIZE_MAX_BYTES)
	{
		*wrong = "it is larger than a megabyte";
		return NULL;
	}
	bytes = memory_new((size_t) status.st_size + 1);
	while (got > 0 && size < (size_t) status.st_size)
	{
		got = read(file, bytes + size, (size_t) status.st_size - size);
		size += got > 0 ? (size_t) got : 0;
	}
	if (got < 0)
	{
		*wrong = strerror(errno);
		memory_forget(bytes);
		return NULL;
	}
	return bytes;
}

/* O_NONBLOCK, as opening a FIFO would wait for its writer. */
char *
credential_slurp(const char *path, const char **wrong)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *bytes;

	if (file < 0)
	{
		*wrong = strerror(errno);
		return NULL;
	}
	bytes = read_all(file, wrong);
	close(file);
	return bytes;
}

/* gcloud's own place; NULL where there is no home. */
static char *
well_known_path(void)
{
	const char *folder = variable("CLOUDSDK_CONFIG");
	const char *home = variable("HOME");

	if (folder != NULL)
	{
		return memory_format("%s/" WELL_KNOWN, folder);
	}
	return home != NULL ? memory_format("%s/.config/gcloud/" WELL_KNOWN, home) : NULL;
}

static struct credential *
load_named(const char *path, const char *name, struct fault *fault)
{
	const char *wrong = NULL;
	char *text = credential_slurp(path, &wrong);
	char *place = memory_format("%s \"%s\"", name, path);
	struct credential *credential = NULL;

	if (text == NULL)
	{
		(void) fault_set(fault, memory_format("%s cannot be used: %s", place, wrong),
						 memory_copy_text("Name a file of credentials that the puller may read."));
	}
	else
	{
		credential = credential_parse(text, place, fault);
	}
	memory_forget(text);
	free(place);
	return credential;
}

static struct credential *
load_default(struct fault *fault)
{
	char *path = well_known_path();
	const char *skip_machine = variable("NO_GCE_CHECK");
	struct credential *credential = NULL;

	if (path != NULL && access(path, F_OK) == 0)
	{
		credential = load_named(path, "the file", fault);
	}
	else if (skip_machine != NULL && strcasecmp(skip_machine, "true") == 0)
	{
		(void) fault_set(
			fault,
			memory_copy_text("there are no credentials, and NO_GCE_CHECK says that there "
							 "is no metadata server"),
			memory_copy_text("Name a file of credentials by --credentials-file or " VARIABLE ", "
							 "or run gcloud auth application-default login; a bare access token "
							 "goes with --token-file, and an emulator needs none: name it by "
							 "PUBSUB_EMULATOR_HOST, without --endpoint."));
	}
	else
	{
		credential = credential_of_machine();
	}
	free(path);
	return credential;
}

struct credential *
credential_load(const char *option, struct fault *fault)
{
	if (option != NULL)
	{
		return load_named(option, "--credentials-file", fault);
	}
	if (variable(VARIABLE) != NULL)
	{
		return load_named(variable(VARIABLE), VARIABLE, fault);
	}
	return load_default(fault);
}

const char *
credential_quota_project(const struct credential *credential)
{
	const char *project = variable("GOOGLE_CLOUD_QUOTA_PROJECT");

	return project != NULL || credential == NULL ? project
												 : credential_text(credential, "quota_project_id");
}
