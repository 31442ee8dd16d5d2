/* SPDX-License-Identifier: PostgreSQL */
#ifndef PROXY_SCAN_H
#define PROXY_SCAN_H

#include <stddef.h>

struct stream;

/*
 * Scanners find the points of a protocol. Each looks at the bytes of the stream behind what is
 * scanned, calls connection_cue() for the points among them, and returns how many more bytes may be
 * forwarded, which can be more than are there yet; the rest waits.
 */
size_t postgres_scan_client(struct stream *stream, const char *bytes, size_t len);
size_t postgres_scan_server(struct stream *stream, const char *bytes, size_t len);
size_t http_scan_client(struct stream *stream, const char *bytes, size_t len);
size_t http_scan_server(struct stream *stream, const char *bytes, size_t len);

#endif
