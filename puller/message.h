/* SPDX-License-Identifier: PostgreSQL */
/*
 * A message as Pub/Sub delivered it, from the pull's response to the answered acknowledgement.
 *
 * The state of a message is the list it is on, and message_set_state() is the only way from one
 * to another. It aborts on a step that is not in its table: above all, only MESSAGE_COMMITTED may
 * become MESSAGE_ACKING, so that "acknowledged before the commit" cannot be written by mistake.
 */
#ifndef INBOX_MESSAGE_H
#define INBOX_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum message_state
{
	MESSAGE_READY,	   /* held, waiting for a connection or for its ordering key */
	MESSAGE_RUNNING,   /* in a transaction that has not been answered */
	MESSAGE_COMMITTED, /* its verdict is durable */
	MESSAGE_ACKING,	   /* handed to ack.c, until the service has answered */
	MESSAGE_RETURNING, /* given back: its lease is being changed to its backoff, or to zero */
	MESSAGE_STATES
};

/* Why a message can never be handed to the handler; it becomes a dead letter instead. */
enum message_defect
{
	DEFECT_NONE,
	DEFECT_NO_KEY,	   /* no --key rule found a key */
	DEFECT_UNSTORABLE, /* U+0000, a lone surrogate, a key out of bounds */
	DEFECT_UNDECODABLE /* the envelope or its base64 is broken */
};

struct lane; /* lane.h */

struct lanes
{
	void *root; /* of a search tree by ordering key */
};

struct message
{
	TAILQ_ENTRY(message) link;
	enum message_state state;

	/* What was delivered. Every string is NUL-terminated UTF-8 without a NUL in it, or NULL. */
	char *ack_id;		/* never NULL: a message without one is dropped by decode */
	char *message_id;	/* never NULL */
	char *ordering_key; /* NULL when absent or empty */
	char *key;			/* NULL when no rule found one */
	bool key_from_message_id;
	char *attributes;	 /* a JSON object as text, storable as jsonb; NULL when absent */
	unsigned char *data; /* the payload, byte for byte; NULL when absent */
	size_t data_size;
	int64_t publish_time; /* microseconds since 1970, or INT64_MIN when absent */
	int delivery_attempt; /* 0 when absent */

	enum message_defect defect;
	char *defect_detail; /* one sentence for people; NULL without a defect */
	char *envelope;		 /* its raw slice of the response, where that is defective */
	size_t envelope_size;

	size_t size; /* bytes this message is counted with in every byte budget */

	/* The lease, in milliseconds of CLOCK_BOOTTIME (clock_ms). */
	int64_t lease_end;		/* when the service takes the message back */
	int64_t lease_limit;	/* when it is given up for good: received + --max-lease */
	int64_t lease_due;		/* when it is to be extended next */
	unsigned lease_request; /* of the extension that has not been answered; 0: none */
	size_t lease_max;		/* ids that may share its next extension, as request_max; 0: any */
	int return_seconds;		/* MESSAGE_RETURNING: the deadline it is given back with */

	unsigned request;	/* of the acknowledgement or return under way; 0: none */
	size_t request_max; /* ids that may share its next request, halved by every refusal; 0: any */

	uint64_t sequence;	 /* the place in the order of arrival */
	struct lane *lane;	 /* of its ordering key; NULL without one */
	unsigned char label; /* what it is counted under: label.h */
	unsigned blames;	 /* how often a timeout hit a batch that held it */
	unsigned losses;	 /* how often the connection was lost on which it ran */
	bool suspect;		 /* it may be why */
	bool noted;			 /* it is recorded, or may be, that it runs now; not yet sent */
};

TAILQ_HEAD(message_list, message);

/* Every list of messages, and what is on them. */
struct message_board
{
	struct message_list list[MESSAGE_STATES];
	size_t count[MESSAGE_STATES];
	struct lanes lanes;
	uint64_t arrived;  /* messages held so far */
	size_t held;	   /* messages on all lists */
	size_t held_bytes; /* the sum of their sizes */
};

/* Returns a zeroed message that is on no list; exits the process when memory is out. */
struct message *message_new(void);

/* Frees a message that is on no list. */
void message_free(struct message *message);

void message_board_init(struct message_board *board);

/* Puts a new message on the list MESSAGE_READY. */
void message_hold(struct message_board *board, struct message *message);

/*
 * Moves a message to another list: to its tail, but on MESSAGE_READY to its place in the order of
 * arrival. Aborts when the step is not allowed.
 */
void message_set_state(struct message_board *board, struct message *message,
					   enum message_state state);

/* From MESSAGE_READY to MESSAGE_RUNNING, on the connection "runner". */
void message_run(struct message_board *board, struct message *message, const void *runner);

/*
 * "again" is a later delivery of a message that waits on MESSAGE_READY, as it does itself: it takes
 * the other's place in the order, and the other is forgotten with its ack id.
 */
void message_replace(struct message_board *board, struct message *message, struct message *again);

/* Gives its lease up for good: also the answer to an extension under way comes too late. */
void message_end_lease(struct message *message);

/*
 * The service brings this message again, and with it all behind it in its lane: what waits there
 * has lost its lease too, or it would overtake.
 */
void message_end_lane(struct message_board *board, const struct message *message);

/* The same for what is behind a gap in any lane: what comes again there may be missing now. */
void message_end_gaps(struct message_board *board);

/* Takes a message off its list and frees it. */
void message_forget(struct message_board *board, struct message *message);

/* The name of a defect as inbox_fail() takes it: 'no_key', 'unstorable', 'undecodable'. */
const char *message_defect_name(enum message_defect defect);

#endif
