/*
 * Seeded pseudo-random numbers for shuffling and simulation: SplitMix64 (Steele, Lea, Flood 2014). Not for secrets.
 */
#ifndef CALIBRD_RANDOM_H
#define CALIBRD_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
	uint64_t z = (random->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Uniform below `bound` (at least 1); the modulo's bias is far below anything that shuffling could show. */
static inline uint64_t random_below(struct random *random, uint64_t bound)
{
	return random_next(random) % bound;
}

/* Uniform in (0, 1). */
static inline double random_unit(struct random *random)
{
	return ((double)(random_next(random) >> 11) + 0.5) / 9007199254740992.0;
}

static inline void random_shuffle(struct random *random, unsigned *items, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t j = random_below(random, i);
		unsigned kept = items[i - 1];

		items[i - 1] = items[j];
		items[j] = kept;
	}
}

#endif
