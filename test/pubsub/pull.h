/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_PULL_H
#define PUBSUB_PULL_H

struct request;
struct subscription;

/* POST subscription:pull */
void pull_handle(struct request *request);

/* Answers the pulls that wait on the subscription, as far as there is something to deliver. */
void pull_serve(struct subscription *subscription);

/* Answers the pulls that wait on a subscription that is about to be deleted. */
void pull_end(struct subscription *subscription);

#endif
