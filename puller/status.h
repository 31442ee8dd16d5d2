/* SPDX-License-Identifier: PostgreSQL */
/* /status.json: what the status page shows, as one document. No payloads and no secrets. */
#ifndef INBOX_STATUS_H
#define INBOX_STATUS_H

#include "buffer.h"
#include "puller.h"

void status_write(const struct puller *puller, int64_t now, struct buffer *out);

#endif
