/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_FAULT_H
#define PUBSUB_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct faults;
struct json_object;
struct problem;
struct request;
struct service;

/* Events are counted per rule: "the third pull" is the third since the rule was made. */
enum fault_event
{
	EVENT_CONNECT,
	EVENT_PUBLISH,
	EVENT_PULL,
	EVENT_ACK,
	EVENT_MODACK,
	EVENT_GET,
	EVENT_SEEK,
	EVENT_OTHER,
	EVENT_DELIVER, /* a message in an answer to a pull */
	EVENT_ACK_ID,  /* an ack id in a request to acknowledge */
	EVENTS
};

/* What is done to one message delivered. */
struct delivery_fault
{
	bool duplicate;	 /* twice in this answer */
	bool share;		 /* to the next pull as well, while this one holds it */
	bool expire;	 /* its lease ends at once, and counts as a failure */
	const char *raw; /* this text in its place; borrowed from the rule */
};

/* What is done to one ack id. */
struct ack_fault
{
	bool ignore;		/* nothing, and a success is reported */
	bool redeliver;		/* acknowledged, and delivered again all the same */
	const char *reason; /* exactly-once: fails for this reason; borrowed from the rule */
};

struct faults *faults_new(struct service *service);
void faults_free(struct faults *faults);

/* The seed of rules with a probability; rules made before keep theirs. */
void faults_seed(struct faults *faults, uint64_t seed);

/* Adds the rules of an array; none of them if one is wrong. */
bool faults_add(struct faults *faults, struct json_object *array, struct problem *problem);

/* Adds one rule for each fault that a correct client survives, with that probability. */
void faults_add_all_kinds(struct faults *faults, double rate);
void faults_clear(struct faults *faults);

/* The rules as they were given, each with "rule", "seen" and "fired". */
struct json_object *faults_render(const struct faults *faults);

/* Whether to refuse the connection that is being made. */
bool fault_connect(struct faults *faults);

/* Draws the effects on a request to that subscription (NULL: to none). */
void fault_request(struct faults *faults, struct request *request, enum fault_event event,
				   const char *subscription);
void fault_delivery(struct faults *faults, const char *subscription, struct delivery_fault *fault);
void fault_ack_id(struct faults *faults, const char *subscription, struct ack_fault *fault);

#endif
