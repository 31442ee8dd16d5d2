/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_API_H
#define PUBSUB_API_H

struct request;

/*
 * The handlers of the REST interface. request->name is the checked full name of the resource; for
 * a list it is what the list belongs to ("projects/P", or a topic). Except in the create handlers
 * the resource exists.
 */
void topic_create(struct request *request);
void topic_get(struct request *request);
void topic_patch(struct request *request);
void topic_delete(struct request *request);
void topic_list(struct request *request);
void topic_list_subscriptions(struct request *request);
void topic_list_snapshots(struct request *request);
void topic_publish(struct request *request);

void subscription_create(struct request *request);
void subscription_get(struct request *request);
void subscription_patch(struct request *request);
void subscription_delete(struct request *request);
void subscription_list(struct request *request);
void subscription_acknowledge(struct request *request);
void subscription_modify_deadline(struct request *request);
void subscription_modify_push(struct request *request);
void subscription_seek(struct request *request);
void subscription_detach(struct request *request);

void snapshot_create(struct request *request);
void snapshot_get(struct request *request);
void snapshot_patch(struct request *request);
void snapshot_delete(struct request *request);
void snapshot_list(struct request *request);

#endif
