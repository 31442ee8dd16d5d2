/* SPDX-License-Identifier: PostgreSQL */
/* /metrics: all that is counted, by the names that docs/metrics.md lists. */
#ifndef INBOX_SCRAPE_H
#define INBOX_SCRAPE_H

#include "buffer.h"
#include "puller.h"

void scrape_write(const struct puller *puller, int64_t now, struct buffer *out);

#endif
