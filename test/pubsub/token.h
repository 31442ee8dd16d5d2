/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_TOKEN_H
#define PUBSUB_TOKEN_H

#include <stdbool.h>

struct problem;
struct request;
struct tokens;

/*
 * The bearer tokens let in: the lines of a file, which is read at every request, so that a test
 * can add one; less those that a fault has revoked.
 */
struct tokens *tokens_new(const char *path);
void tokens_free(struct tokens *tokens);

/* Whether the request carries a valid token; if not, a problem like the real service's. */
bool token_check(struct tokens *tokens, const struct request *request, struct problem *problem);

/* What the request carries, or NULL; lives as long as the request. */
const char *token_of(const struct request *request);

/* From now on the token of this request is no longer valid. */
void token_revoke(struct tokens *tokens, const struct request *request);

#endif
