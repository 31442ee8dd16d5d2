/* SPDX-License-Identifier: PostgreSQL */
#ifndef PUBSUB_RANDOM_H
#define PUBSUB_RANDOM_H

#include <stdint.h>

/* The splitmix64 generator: a seed gives the same numbers on every machine. */
struct random
{
	uint64_t state;
};

static inline uint64_t
random_next(struct random *random)
{
	uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* A number below the limit, which is not 0. */
static inline uint64_t
random_below(struct random *random, uint64_t limit)
{
	return random_next(random) % limit;
}

/* A number of at least 0 and less than 1. */
static inline double
random_unit(struct random *random)
{
	return (double) (random_next(random) >> 11) * 0x1p-53;
}

/* A stream of its own for each name, so that another actor does not shift the others' draws. */
static inline struct random
random_stream(uint64_t seed, const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;
	struct random mixed;

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char) *name) * UINT64_C(0x100000001b3);
	mixed.state = hash;
	mixed.state = random_next(&mixed);
	return mixed;
}

#endif
