/* SPDX-License-Identifier: PostgreSQL */
/*
 * Preloaded, it makes one call of libpq or libcurl fail: FAIL_CALL=PQflush:3 the third of PQflush.
 * The file named by FAIL_CALL_DONE is made when that has happened. One thread calls at a time.
 */
#define _GNU_SOURCE
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo

static bool
fails(const char *name)
{
	static int number;
	const char *wanted = getenv("FAIL_CALL");
	size_t size = strlen(name);
	int file;

	if (wanted == NULL || strncmp(wanted, name, size) != 0 || wanted[size] != ':' ||
		++number != atoi(wanted + size + 1))
	{
		return false;
	}
	file = open(getenv("FAIL_CALL_DONE"), O_WRONLY | O_CREAT, 0600);
	close(file);
	return true;
}

#define FAILING(type, name, parameters, arguments, failure)                    \
	type name parameters                                                       \
	{                                                                          \
		type(*real) parameters = (type(*) parameters) dlsym(RTLD_NEXT, #name); \
		return fails(#name) ? (failure) : real arguments;                      \
	}

FAILING(PGconn *, PQconnectStartParams,
		(const char *const *keywords, const char *const *values, int expand),
		(keywords, values, expand), NULL)
FAILING(PGconn *, PQconnectdbParams,
		(const char *const *keywords, const char *const *values, int expand),
		(keywords, values, expand), NULL)
FAILING(PostgresPollingStatusType, PQconnectPoll, (PGconn * connection), (connection),
		PGRES_POLLING_FAILED)
FAILING(int, PQsendQuery, (PGconn * connection, const char *sql), (connection, sql), 0)
FAILING(int, PQsendQueryParams,
		(PGconn * connection, const char *sql, int count, const Oid *types,
		 const char *const *values, const int *lengths, const int *formats, int format),
		(connection, sql, count, types, values, lengths, formats, format), 0)
FAILING(int, PQenterPipelineMode, (PGconn * connection), (connection), 0)
FAILING(int, PQexitPipelineMode, (PGconn * connection), (connection), 0)
FAILING(int, PQpipelineSync, (PGconn * connection), (connection), 0)
FAILING(int, PQconsumeInput, (PGconn * connection), (connection), 0)
FAILING(int, PQflush, (PGconn * connection), (connection), -1)
FAILING(int, PQsetnonblocking, (PGconn * connection, int on), (connection, on), -1)
FAILING(PQconninfoOption *, PQconninfoParse, (const char *text, char **error), (text, error), NULL)
FAILING(CURLcode, curl_global_init, (long flags), (flags), CURLE_FAILED_INIT)
FAILING(CURLM *, curl_multi_init, (void), (), NULL)
FAILING(CURL *, curl_easy_init, (void), (), NULL)
FAILING(struct curl_slist *, curl_slist_append, (struct curl_slist * list, const char *text),
		(list, text), NULL)
FAILING(CURLMcode, curl_multi_add_handle, (CURLM * multi, CURL *easy), (multi, easy),
		CURLM_OUT_OF_MEMORY)
FAILING(CURLMcode, curl_multi_perform, (CURLM * multi, int *running), (multi, running),
		CURLM_OUT_OF_MEMORY)
FAILING(CURLMcode, curl_multi_poll,
		(CURLM * multi, struct curl_waitfd more[], unsigned int count, int ms, int *ready),
		(multi, more, count, ms, ready), CURLM_OUT_OF_MEMORY)
FAILING(CURLU *, curl_url, (void), (), NULL)
FAILING(CURLUcode, curl_url_set,
		(CURLU * url, CURLUPart part, const char *text, unsigned int flags),
		(url, part, text, flags), CURLUE_OUT_OF_MEMORY)
FAILING(char *, curl_easy_escape, (CURL * easy, const char *text, int size), (easy, text, size),
		NULL)

/* What follows is a long or a pointer, or with 64 bits an offset: one register each. */
CURLcode
curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	CURLcode (*real)(CURL *, CURLoption, ...) =
		(CURLcode(*)(CURL *, CURLoption, ...)) dlsym(RTLD_NEXT, "curl_easy_setopt");
	va_list arguments;
	void *value;

	va_start(arguments, option);
	value = va_arg(arguments, void *);
	va_end(arguments);
	return fails("curl_easy_setopt") ? CURLE_OUT_OF_MEMORY : real(easy, option, value);
}
