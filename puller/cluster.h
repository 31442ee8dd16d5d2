/* SPDX-License-Identifier: PostgreSQL */
/*
 * Whose commits are acknowledged: the cluster, by its system identifier, on its timeline. Another
 * one may lack what the one before had committed; no client can see that otherwise.
 */
#ifndef INBOX_CLUSTER_H
#define INBOX_CLUSTER_H

#include "puller.h"

/*
 * Called with the facts of each connection that is made. When they are another cluster's, what has
 * not been acknowledged yet is dropped and comes again: the new one decides what it has. Connections
 * to the old one are closed.
 */
void cluster_watch(struct puller *puller, const struct db_facts *facts);

#endif
