/* SPDX-License-Identifier: PostgreSQL */
#ifndef PROXY_TRIGGER_H
#define PROXY_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"

/* The points of a connection that a trigger can name. Each lies at one byte of one direction. */
enum cue
{
	CUE_CONNECT,		 /* a client connects */
	CUE_CLIENT_BYTE,	 /* byte at=N from the client */
	CUE_SERVER_BYTE,	 /* byte at=N from the server */
	CUE_COMMIT_QUERY,	 /* PostgreSQL: the first byte of the COMMIT */
	CUE_COMMIT_SENT,	 /* behind its last byte, the Sync included */
	CUE_COMMIT_ANSWER,	 /* the first byte of its CommandComplete */
	CUE_COMMIT_ANSWERED, /* behind that message */
	CUE_REQUEST,		 /* HTTP: the first byte of a request */
	CUE_REQUEST_SENT,
	CUE_RESPONSE,
	CUE_RESPONSE_SENT,
	CUES
};

enum deed
{
	DEED_CUT,		 /* reset the client; the server gets what was forwarded, and the end */
	DEED_CUT_CLIENT, /* the server's side stays open, with nobody behind it */
	DEED_CUT_SERVER, /* the client's side stays open */
	DEED_STALL,		 /* forward nothing any more, in either direction, until "resume" */
	DEED_DELAY,		 /* hold this direction for ms=N */
	DEEDS
};

/* When to do what, for instance "on=commit-query nth=2 offset=5 do=cut". */
struct trigger
{
	struct link link;
	size_t number;
	enum cue cue;
	enum deed deed;
	uint64_t nth;	 /* only this one of the points, counted from 1; 0: not by number */
	uint64_t every;	 /* every so manieth of them; 0: not */
	uint64_t offset; /* so many bytes behind the point */
	uint64_t at;
	int64_t delay; /* nanoseconds */
	char *path;	   /* HTTP: only requests whose line contains this; NULL: all */
	uint64_t seen;
	uint64_t fired;
};

/* Reads the words of a trigger; NULL, with what is wrong in the 200 bytes of problem. */
struct trigger *trigger_parse(const char *words, char *problem);

/* Counts a point it is about, and tells whether to act. */
bool trigger_fires(struct trigger *trigger, enum cue cue, const char *request_line);
void trigger_free(struct trigger *trigger);

#endif
