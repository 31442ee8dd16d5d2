/* SPDX-License-Identifier: PostgreSQL */
/*
 * The data of a message: as it was given, and as a handler wants it.
 */
#ifndef INBOX_PAYLOAD_H
#define INBOX_PAYLOAD_H

#include "postgres.h"

#include "common/cryptohash.h"

typedef struct inbox_payload
{
	Datum value; /* detoasted */
	Oid type;	 /* jsonb, json, text or bytea */
	bool isnull;
} inbox_payload;

/* Whether a handler may declare this type for the payload. */
extern bool inbox_payload_type(Oid type);

/* The payload as one of those types; an error where the bytes are not what that type can hold. */
extern Datum inbox_payload_convert(const inbox_payload *payload, Oid type);

/*
 * The first 8 bytes of SHA-256, big-endian; the lowest bit is 1 for the canonical text of a jsonb
 * and 0 for bytes as given. Only hashes that agree in that bit may be compared.
 */
extern int64 inbox_payload_hash(const inbox_payload *payload, pg_cryptohash_ctx *sha256);

#endif
