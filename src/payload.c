/* SPDX-License-Identifier: PostgreSQL */
/*
 * Payloads: bytes that a handler may want as text, json or jsonb, and the other way round.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "common/sha2.h"
#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"

#include "payload.h"

bool
inbox_payload_type(Oid type)
{
	return type == JSONBOID || type == JSONOID || type == TEXTOID || type == BYTEAOID;
}

/* The payload as bytes: json, text and bytea share one form, a jsonb is printed. */
static struct varlena *
as_bytes(const inbox_payload *payload)
{
	if (payload->type == JSONBOID)
	{
		Jsonb *jsonb = DatumGetJsonbP(payload->value);

		return (struct varlena *) cstring_to_text(
			JsonbToCString(NULL, &jsonb->root, VARSIZE(jsonb)));
	}
	return PG_DETOAST_DATUM_PACKED(payload->value);
}

Datum
inbox_payload_convert(const inbox_payload *payload, Oid type)
{
	struct varlena *bytes;
	char *string;

	if (payload->type == type)
		return payload->value;
	bytes = as_bytes(payload);
	if (type == BYTEAOID || payload->type == JSONBOID)
		return PointerGetDatum(bytes);
#ifndef INBOX_WITHOUT_PAYLOAD_CHECK
	(void) pg_verifymbstr(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), false);
#endif
	if (type == TEXTOID)
		return PointerGetDatum(bytes);
	string = text_to_cstring((text *) bytes);
	return DirectFunctionCall1(type == JSONOID ? json_in : jsonb_in, CStringGetDatum(string));
}

int64
inbox_payload_hash(const inbox_payload *payload, pg_cryptohash_ctx *sha256)
{
	struct varlena *bytes = as_bytes(payload);
	uint8 digest[PG_SHA256_DIGEST_LENGTH];
	uint64 first;

	if (pg_cryptohash_init(sha256) < 0 ||
		pg_cryptohash_update(sha256, (uint8 *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes)) < 0 ||
		pg_cryptohash_final(sha256, digest, sizeof(digest)) < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(sha256));
	memcpy(&first, digest, sizeof(first));
	first = pg_ntoh64(first) & ~UINT64CONST(1);
	return (int64) (payload->type == JSONBOID ? first | 1 : first);
}
